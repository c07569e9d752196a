#include "esscher/concentration/detail/length_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "esscher/base/error.h"
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

}  // namespace

std::string bracket_text(const LengthAnswer& answer) {
  return "the answer lies between " + std::to_string(answer.bracket_lo) + " and " +
         std::to_string(answer.bracket_hi) + " except with probability " +
         to_text(answer.error_probability);
}

LengthAnswer never(LengthAnswer answer, const std::string& why) {
  answer.status = LengthStatus::never;
  answer.value = answer.value_before = kUnknown;
  answer.explanation = why;
  return answer;
}

LengthAnswer certified(LengthAnswer answer, const std::function<double(std::int64_t)>& D) {
  const SmallestLength found = smallest_length(D, answer.eps, kAnyLength);
  if (!found.length) {
    const std::string why = "at L = 1e15 the error is still " + to_text(found.value) +
                            " > eps = " + to_text(answer.eps) +
                            "; longer prompts are beyond what double precision can show";
    answer = never(std::move(answer), why);
    answer.value = found.value;
    return answer;
  }
  answer.length = found.length;
  answer.value = found.value;
  answer.value_before = found.before;
  answer.status = LengthStatus::certified;
  answer.explanation =
      *found.length > 1 ? "D(L) <= eps < D(L-1), both evaluated" : "one token is enough";
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
      if (unsure && s == 0) {
        hi = {L, last};
        break;
      }
      const std::string why = "at L = " + std::to_string(L) +
                              ", the longest prompt this engine may draw, the error is still " +
                              to_text(last.value) + " > eps = " + to_text(answer.eps);
      answer = never(std::move(answer), why);
      answer.value = last.value;
      answer.std_error = last.std_error;
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
    answer.length = std::clamp(interpolate(*unsure, hi, answer.eps), lo.L + 1, hi.L);
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
  return answer;
}

}  // namespace esscher
