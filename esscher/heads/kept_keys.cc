#include "esscher/heads/kept_keys.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/heads/head.h"
#include "esscher/heads/tail.h"

namespace esscher {
namespace {

// The sliding window of a head whose prompt is longer than it.
bool slides(const Head& head) { return head.rules.window > 0 && head.rules.window < head.n; }

// Keys that a mask shows to some query, and whether one of them is hidden from a later query.
KeptKeys shown_keys(const Head& head) {
  std::vector<bool> shown(static_cast<std::size_t>(head.n));
  std::vector<bool> before(shown), now(shown);
  KeptKeys out;
  for (Index query = 0; query < head.n_queries; ++query) {
    const Vector bias = head.rules.bias(query);
    check_dimension("head " + head.name, "mask of query " + std::to_string(query), bias.size(),
                    head.n);
    const Index end = head.prompt_end(query);
    bool sees = false;
    bool loses = false;
    for (Index l = 0; l < head.n; ++l) {
      const auto key = static_cast<std::size_t>(l);
      now[key] = l < end && std::isfinite(bias(l));
      if (now[key] && !shown[key]) ++out.count;
      shown[key] = shown[key] || now[key];
      sees = sees || now[key];
      loses = loses || (before[key] && !now[key]);
    }
    if (!sees) continue;  // padding among the queries forgets nothing
    out.forgotten = out.forgotten || loses;
    std::swap(before, now);
  }
  return out;
}

}  // namespace

KeptKeys kept_keys(const Head& head) {
  KeptKeys out = head.rules.bias ? shown_keys(head) : KeptKeys{.count = head.n};
  if (slides(head)) {
    out.count = std::min(out.count, head.rules.window);
    out.forgotten = true;
  }
  return out;
}

Index kept_sinks(const Head& head, Index sinks) { return slides(head) ? 0 : sinks; }

Index window_state(const Head& head, const KeptKeys& kept, Index w, Tail tail) {
  const Index pair = head.dk + head.dv;
  if (w >= kept.count) return kept.count * pair;
  // The last keys of a sliding window are kept in turn. What a mask hides is not known before.
  const bool in_turn = tail == Tail::none && !head.rules.bias;
  const Index pairs = kept.forgotten && !in_turn ? kept.count : w;
  return pairs * pair + tail_state(tail, head.dk, head.dv);
}

Index window_multiply_adds(const Head& head, const KeptKeys& kept, Index w, Tail tail) {
  const Index pair = head.dk + head.dv;
  if (w >= kept.count) return kept.count * pair;
  return w * pair + tail_multiply_adds(tail, head.dk, head.dv);
}

}  // namespace esscher
