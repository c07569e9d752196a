#include "esscher/prompt/detail/far_tokens.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"

namespace esscher::detail {
namespace {

constexpr double kMostClose = 1e-8;
constexpr double kOutweighed = 45;  // e^-45 is rounding

void check_apart(const std::vector<FarPart>& parts, double given) {
  double top = given + kOutweighed, from = std::numeric_limits<double>::infinity();
  double n = 0, close = 0;
  for (const FarPart& part : parts) {
    top = std::max(top, part.top);
    from = std::min(from, part.far->from + part.bias);
  }
  const double overlap = 2 + std::max(0.0, top - from);
  for (const FarPart& part : parts) {
    n += part.n;
    close += part.n * part.far->density * overlap / part.far->reach;
  }
  if (given + kOutweighed > from || !(close < kMostClose)) {
    throw CapabilityError("exact: scores of " + brief(n) +
                          " tokens with tails as long as these lie close together beyond " +
                          brief(from) + ", where nodes end; the direct engine can serve them");
  }
}

// log P(no token of any part above x, but for one of the part `own`).
double log_none_above(const std::vector<FarPart>& parts, const FarPart& own, double x) {
  double sum = 0;
  for (const FarPart& part : parts) {
    const double n = &part == &own ? part.n - 1 : part.n;
    sum += n * std::log1p(-part.far->above(x - part.bias));
  }
  return sum;
}

}  // namespace

void add_far_tokens(const std::vector<FarPart>& parts, double given, GroupMoments& moments) {
  if (parts.empty()) return;
  check_apart(parts, given);
  double none = 0;
  for (const FarPart& part : parts) none += part.n * std::log1p(-part.far->mass);
  const double near = std::exp(none);
  moments.mean *= near;
  moments.square *= near;
  moments.weights2 *= near;
  moments.weights *= near;
  moments.given *= near;
  moments.log_total *= near;
  moments.entropy *= near;
  for (const FarPart& part : parts) {
    const FarScores& far = *part.far;
    for (Index i = 0; i < far.s.size(); ++i) {
      const double x = far.s[i] + part.bias;
      const double once = part.n * std::exp(log_none_above(parts, part, x));
      const double wins = once * far.p[i];
      moments.mean += once * far.first.row(i).transpose();
      moments.square += once * far.second[i];
      moments.weights2 += wins;
      moments.weights[static_cast<Index>(part.at)] += wins;
      moments.log_total += wins * x;
    }
  }
}

}  // namespace esscher::detail
