#include "esscher/concentration/detail/length_search.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/prompt/errors.h"

namespace esscher {
namespace {

struct Point {
  std::int64_t L;
  Noisy at;
};

// Where the power law through two estimates meets eps.
std::int64_t interpolate(const Point& a, const Point& b, double eps) {
  double g = 1;
  if (a.L != b.L && a.at.value > 0 && b.at.value > 0) {
    g = -std::log(a.at.value / b.at.value) /
        std::log(static_cast<double>(a.L) / static_cast<double>(b.L));
  }
  const double L =
      static_cast<double>(a.L) * std::pow(a.at.value / eps, 1 / std::clamp(g, 0.2, 2.0));
  return static_cast<std::int64_t>(std::ceil(std::min(L, 1e18)));
}

// Powers of two up to a million, powers of sixteen beyond, and the longest prompt.
std::vector<std::int64_t> search_grid() {
  std::vector<std::int64_t> grid;
  for (std::int64_t L = 1; L < kMaxLength; L *= L < 1000000 ? 2 : 16) grid.push_back(L);
  grid.push_back(kMaxLength);
  return grid;
}

// Samples of longer prompts, as far as they are cheap: do they show that D rises again?
void look_beyond(LengthAnswer& answer, std::int64_t longest, const Evaluate& evaluate) {
  std::int64_t seen = 0;
  for (const std::int64_t factor : {2, 4}) {
    const std::int64_t L = answer.bracket_hi * factor;
    if (answer.bracket_hi > longest / factor) break;
    seen = L;
    const Noisy at = evaluate(L, 1);
    if (!(at.ci.lo > answer.eps)) continue;
    if (!answer.rises_at) answer.rises_at = L;
    if (!answer.peak_value || at.value > *answer.peak_value) {
      answer.peak_length = L;
      answer.peak_value = at.value;
    }
  }
  if (answer.rises_at) {
    answer.stays_below = false;
    answer.explanation += "; " + rise_text(answer);
  } else {
    answer.explanation += seen > 0 ? "; samples show no rise up to L = " + std::to_string(seen) +
                                         ", longer prompts were not looked at"
                                   : "; longer prompts were not looked at";
  }
}

}  // namespace

std::string bracket_text(const LengthAnswer& answer) {
  const std::string chance = " except with probability " + brief(answer.error_probability, 2);
  if (answer.bracket_hi == kMaxLength) {
    return "the answer is at least " + std::to_string(answer.bracket_lo) + chance +
           ", and longer prompts than this engine may draw would be needed to bound it above";
  }
  return "the answer lies between " + std::to_string(answer.bracket_lo) + " and " +
         std::to_string(answer.bracket_hi) + chance;
}

std::string rise_text(const LengthAnswer& answer) {
  if (!answer.rises_at) {
    return "D stays below eps for all longer prompts on the grid (powers of 2 up to 1e6, of 16 up "
           "to 1e15)";
  }
  const std::string rise = "but D rises above eps again: D(" + std::to_string(*answer.peak_length) +
                           ") = " + brief(*answer.peak_value) + " > eps";
  if (!answer.enough_from) return rise;
  return rise + "; it stays below eps from L = " + std::to_string(*answer.enough_from) + " on";
}

LengthAnswer never(LengthAnswer answer, const std::string& why) {
  answer.status = LengthStatus::never;
  answer.value = answer.value_before = kUnknown;
  answer.explanation = why;
  return answer;
}

// D need not be monotone, so every length of the grid is looked at.
LengthAnswer certified(LengthAnswer answer, const std::function<double(std::int64_t)>& exact) {
  std::map<std::int64_t, double> known;
  const auto D = [&](std::int64_t L) {
    const auto [place, fresh] = known.try_emplace(L, 0.0);
    if (fresh) place->second = exact(L);
    return place->second;
  };
  const std::vector<std::int64_t> grid = search_grid();
  const auto first =
      std::find_if(grid.begin(), grid.end(), [&](std::int64_t L) { return D(L) <= answer.eps; });
  if (first == grid.end()) {
    const std::string why = "at L = 1e15 the error is still " + to_text(D(grid.back())) +
                            " > eps = " + to_text(answer.eps) +
                            "; longer prompts were not looked at";
    answer = never(std::move(answer), why);
    answer.searched_up_to = grid.back();
    answer.value = D(grid.back());
    return answer;
  }
  // Between a length of the grid that is too short and the next one, which is not.
  const auto crossing = [&](auto place) {
    const std::int64_t from = place == grid.begin() ? *place : *std::prev(place);
    return smallest_length(D, answer.eps, {.from = from, .to = *place});
  };
  const SmallestLength found = crossing(first);
  answer.length = found.length;
  answer.value = found.value;
  answer.value_before = found.before;
  answer.status = LengthStatus::certified;
  answer.explanation =
      *found.length > 1 ? "D(L) <= eps < D(L-1), both evaluated" : "one token is enough";
  answer.enough_from = found.length;
  for (auto place = first; place != grid.end(); ++place) {
    if (!(D(*place) > answer.eps)) continue;
    if (!answer.rises_at) answer.rises_at = *place;
    if (!answer.peak_value || D(*place) > *answer.peak_value) {
      answer.peak_length = *place;
      answer.peak_value = D(*place);
    }
    answer.enough_from.reset();
    if (std::next(place) != grid.end() && D(*std::next(place)) <= answer.eps) {
      answer.enough_from = crossing(std::next(place)).length;
    }
  }
  answer.stays_below = !answer.rises_at;
  answer.explanation += "; " + rise_text(answer);
  return answer;
}

LengthAnswer stochastic(LengthAnswer answer, std::int64_t longest, const Evaluate& evaluate) {
  int looks = 0;
  Noisy last{};
  // +1: above eps for sure, -1: below for sure, 0: cannot tell with 8 times the queries.
  const auto side = [&](std::int64_t L) {
    for (std::int64_t factor : {1, 2, 4, 8}) {
      last = evaluate(L, factor);
      ++looks;
      if (last.ci.lo > answer.eps) return 1;
      if (last.ci.hi <= answer.eps) return -1;
    }
    return 0;
  };
  Point lo{0, {}}, hi{0, {}};
  std::optional<Point> unsure;
  for (std::int64_t L = 1; hi.L == 0; L = std::min(L * 4, longest)) {
    const int s = side(L);
    if (s < 0) {
      hi = {L, last};
    } else if (s > 0) {
      lo = {L, last};
    } else if (!unsure) {
      unsure = {L, last};
    }
    if (s >= 0 && L == longest) {
      if (s == 0) {
        hi = {kMaxLength, last};  // nobody knows
        break;
      }
      const std::string why = "at L = " + std::to_string(L) +
                              ", the longest prompt this engine may draw, the error is still " +
                              to_text(last.value) + " > eps = " + to_text(answer.eps);
      answer = never(std::move(answer), why);
      answer.value = last.value;
      answer.std_error = last.std_error;
      answer.searched_up_to = L;
      return answer;
    }
  }
  while (!unsure && hi.L - lo.L > 1) {
    const std::int64_t mid = lo.L + (hi.L - lo.L) / 2;
    const int s = side(mid);
    if (s == 0) {
      unsure = {mid, last};
    } else {
      (s > 0 ? lo : hi) = {mid, last};
    }
  }
  answer.length = hi.L;
  if (unsure) {
    // Around here nobody can tell; estimates decide, the bracket says how far they may be off.
    const std::int64_t drawn = std::min(hi.L, longest);
    answer.length = std::clamp(interpolate(*unsure, {drawn, hi.at}, answer.eps), lo.L + 1, drawn);
    hi.at = evaluate(*answer.length, 8);
  }
  answer.bracket_lo = unsure ? lo.L + 1 : *answer.length;
  answer.bracket_hi = unsure ? hi.L : *answer.length;
  answer.value = hi.at.value;
  answer.std_error = hi.at.std_error;
  answer.value_before = *answer.length > 1 ? evaluate(*answer.length - 1, 8).value : kUnknown;
  answer.status = LengthStatus::estimated;
  answer.error_probability = std::min(1.0, kErrorProbability * looks / kMaxLooks);
  answer.explanation = bracket_text(answer) + " (" + std::to_string(looks) + " looks at samples)";
  look_beyond(answer, longest, evaluate);
  return answer;
}

}  // namespace esscher
