#include "esscher/model/allocate.h"

#include <algorithm>
#include <regex>

#include "esscher/base/error.h"

namespace esscher {
namespace {

constexpr Index kBytes = 4;  // per number, in float32

struct Choice {
  Index bytes = 0;
  double error = 0;
  std::optional<WindowOptions> window = {};  // none: the whole cache
};

std::pair<Index, Index> place_of(const std::string& name) {
  static const std::regex pattern(R"((?:.*\.)?L(\d{1,6})\.H(\d{1,6}))");
  std::smatch found;
  if (!std::regex_match(name, found, pattern)) {
    throw_argument("plan", "name of a head", name, "a name that ends like L0.H3");
  }
  return {std::stol(found[1]), std::stol(found[2])};
}

// The choices on the lower convex hull, cheapest first.
std::vector<Choice> hull_of(const HeadDiagnosis& head, Index sinks) {
  if (!head.window || head.window->empty()) {
    throw_argument("plan", "windows of head " + head.name, "none", "at least one");
  }
  std::vector<Choice> all = {{.bytes = kBytes * head.softmax_numbers(), .error = 0}};
  for (const WindowRow& row : *head.window) {
    if (row.tail == Tail::mixture) continue;
    all.push_back({.bytes = kBytes * row.state,
                   .error = row.lin,
                   .window = WindowOptions{.window = row.w,
                                           .sinks = std::min(sinks, row.w),
                                           .heavy = row.heavy.value_or(0),
                                           .tail = row.tail}});
  }
  std::stable_sort(all.begin(), all.end(), [](const Choice& a, const Choice& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.error < b.error;
  });
  std::vector<Choice> hull;
  const auto slope = [](const Choice& a, const Choice& b) {
    return (a.error - b.error) / static_cast<double>(b.bytes - a.bytes);
  };
  for (Choice& next : all) {
    if (!hull.empty() && next.error >= hull.back().error) continue;
    while (hull.size() > 1 &&
           slope(hull[hull.size() - 2], hull.back()) <= slope(hull.back(), next)) {
      hull.pop_back();
    }
    hull.push_back(std::move(next));
  }
  return hull;
}

}  // namespace

Allocation allocate_windows(const std::vector<HeadDiagnosis>& heads, Index sinks, Index bytes) {
  struct Place {
    std::pair<Index, Index> key;
    std::vector<Choice> hull;
    std::size_t at = 0;
  };
  std::vector<Place> places;
  Allocation out;
  for (const HeadDiagnosis& head : heads) {
    places.push_back({place_of(head.name), hull_of(head, sinks)});
    out.bytes += places.back().hull.front().bytes;
  }
  if (out.bytes > bytes) {
    throw_argument("plan", "bytes", std::to_string(bytes),
                   "at least " + std::to_string(out.bytes) + ", the cheapest windows of all heads");
  }
  while (true) {
    Place* best = nullptr;
    double gain = 0;
    for (Place& place : places) {
      if (place.at + 1 == place.hull.size()) continue;
      const Choice& now = place.hull[place.at];
      const Choice& next = place.hull[place.at + 1];
      if (out.bytes + next.bytes - now.bytes > bytes) continue;
      const double here = (now.error - next.error) / static_cast<double>(next.bytes - now.bytes);
      if (here > gain) {
        gain = here;
        best = &place;
      }
    }
    if (best == nullptr) break;
    out.bytes += best->hull[best->at + 1].bytes - best->hull[best->at].bytes;
    ++best->at;
  }
  for (const Place& place : places) {
    const Choice& choice = place.hull[place.at];
    out.error += choice.error;
    if (!out.plan.heads.try_emplace(place.key, choice.window).second) {
      throw_argument("plan", "heads", "two heads of one layer and number", "heads of one text");
    }
  }
  return out;
}

}  // namespace esscher
