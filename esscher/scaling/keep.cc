#include "esscher/scaling/keep.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/scaling/schedule.h"

namespace esscher {
namespace {

double quantity(const ScoreModel& scores, Kept kept, double gap, double f, double n) {
  if (kept == Kept::needle) return scores.needle(f, n, gap);
  const WeightNumbers w = scores.weights(f, n);
  return kept == Kept::ess ? 1 / w.H : w.entropy;
}

constexpr double kLargestFactor = 100;
constexpr double kScan = 1.1;  // between factors that are looked at before one is narrowed down

// The place between low and high where the truth of `reached` changes to true.
template <class Reached>
double narrowed(double low, double high, const Reached& reached) {
  for (int i = 0; i < 50 && high - low > 1e-13 * high; ++i) {
    const double middle = 0.5 * (low + high);
    (reached(middle) ? high : low) = middle;
  }
  return high;
}

// ESS and entropy fall as scores get sharper: the factor is bracketed from 1 on.
KeptFactor solve_falling(const std::function<double(double)>& q, double n, double target,
                         double end) {
  const auto reached = [&](double f) { return q(f) <= target; };
  double high = 1, low = 1;
  while (high < end && !reached(high)) low = std::exchange(high, std::min(end, 1.5 * high));
  KeptFactor out{.L = n, .value = q(high), .target = target};
  if (out.value > target) return out;
  while (low == high && low > 1e-3) {
    low /= 1.5;
    if (reached(low)) high = low;
  }
  out.factor = narrowed(low, high, reached);
  out.value = q(*out.factor);
  return out;
}

// A needle gains at first and loses again where the crowd's largest scores overtake it: the smallest
// factor at which it weighs enough.
KeptFactor solve_needle(const std::function<double(double)>& q, double n, double target,
                        double end) {
  KeptFactor out{.L = n, .value = q(1e-3), .target = target};
  double low = 1e-3;
  for (double f = 0.01; f <= end; f *= kScan) {
    const double value = q(f);
    out.value = std::max(out.value, value);
    if (value >= target) {
      out.factor = narrowed(low, f, [&](double x) { return q(x) >= target; });
      out.value = q(*out.factor);
      return out;
    }
    low = f;
  }
  return out;
}

KeptFactor solve(const ScoreModel& scores, Kept kept, double gap, double n, double target) {
  const auto q = [&](double f) { return quantity(scores, kept, gap, f, n); };
  // Scores must stay where the engine serves them.
  const double end = std::min(kLargestFactor, 500 / scores.deviation(1));
  return kept == Kept::needle ? solve_needle(q, n, target, end) : solve_falling(q, n, target, end);
}

// The c in [low, high] with the smallest distance, by golden section on a fine scan.
double best_coefficient(const std::function<double(double)>& distance, double low, double high) {
  constexpr int kPlaces = 200;
  double best = low;
  for (int i = 0; i <= kPlaces; ++i) {
    const double c = low + (high - low) * i / kPlaces;
    if (distance(c) < distance(best)) best = c;
  }
  const double step = (high - low) / kPlaces;
  double a = best - step, b = best + step;
  const double ratio = (std::sqrt(5.0) - 1) / 2;
  for (int i = 0; i < 60; ++i) {
    const double x = b - ratio * (b - a), y = a + ratio * (b - a);
    (distance(x) < distance(y) ? b : a) = distance(x) < distance(y) ? y : x;
  }
  return 0.5 * (a + b);
}

// The published families and where their coefficients are looked for.
struct Published {
  ScheduleKind kind;
  double low = 0, high = 0;
};
constexpr Published kPublished[] = {{ScheduleKind::constant},       {ScheduleKind::qwen},
                                    {ScheduleKind::longrope},       {ScheduleKind::sqrt_log, 0, 10},
                                    {ScheduleKind::ssmax, 0, 4},    {ScheduleKind::yarn, -0.2, 1},
                                    {ScheduleKind::llama4, -0.2, 2}};

}  // namespace

std::vector<KeptFactor> kept_factors(const ScoreModel& scores, Kept kept, double gap, double train,
                                     const std::vector<double>& lengths) {
  if (!(train > 1 && train <= scores.longest())) {
    throw_argument("scaling", "train", to_text(train), "a length > 1 that the scores serve");
  }
  const double target = quantity(scores, kept, gap, 1, train);
  std::vector<KeptFactor> out;
  for (const double n : lengths) out.push_back(solve(scores, kept, gap, n, target));
  return out;
}

std::vector<FamilyFit> nearest_families(const std::vector<KeptFactor>& factors, double train) {
  std::vector<KeptFactor> known;
  for (const KeptFactor& k : factors) {
    if (k.factor && k.L > train * (1 + 1e-9)) known.push_back(k);
  }
  if (known.empty()) return {};
  using Family = std::function<double(double c, double n)>;
  const auto distance = [&](const Family& family, double c) {
    double worst = 0;
    for (const KeptFactor& k : known) {
      worst = std::max(worst, std::abs(family(c, k.L) / *k.factor - 1));
    }
    return worst;
  };
  std::vector<FamilyFit> out;
  const auto fitted = [&](std::string_view family, double low, double high, const Family& at) {
    const double c = best_coefficient([&](double x) { return distance(at, x); }, low, high);
    out.push_back({.family = std::string(family), .c = c, .worst = distance(at, c)});
  };
  for (const Published& p : kPublished) {
    const Family at = [&](double c, double n) { return published_factor(p.kind, c, train, n); };
    if (has_coefficient(p.kind)) {
      fitted(name(p.kind), p.low, p.high, at);
    } else {
      out.push_back({.family = std::string(name(p.kind)), .worst = distance(at, 0)});
    }
  }
  const double log_train = std::log(train);
  fitted("log-power", -4, 4,
         [=](double c, double n) { return std::pow(std::log(n) / log_train, c); });
  std::stable_sort(out.begin(), out.end(),
                   [](const FamilyFit& x, const FamilyFit& y) { return x.worst < y.worst; });
  return out;
}

}  // namespace esscher
