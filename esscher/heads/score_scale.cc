#include "esscher/heads/score_scale.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "esscher/base/number_text.h"
#include "esscher/estimate/quantile.h"
#include "esscher/scaling/crowd.h"

namespace esscher {
namespace {

constexpr double kMultiples[] = {2, 4, 16};
// A forecast solves an integral many times; these few queries are enough for a median.
constexpr std::size_t kForecastQueries = 5;

// Scores that vary more have one key of weight 1, and the nodes of a Gaussian crowd would be too many.
constexpr double kSharpest = 100;

double deviation(const Vector& s) { return std::sqrt((s.array() - s.mean()).square().mean()); }

struct Weights {
  double ess = 0, top = 0;
};

Weights weights_of(const Vector& s) {
  const Vector w = (s.array() - s.maxCoeff()).exp();
  return {.ess = w.sum() * w.sum() / w.squaredNorm(), .top = 1 / w.sum()};
}

// The heaviest key, and the others.
struct Split {
  double top = 0;
  Index place = 0;
  Vector others;
};

Split split(const Vector& s) {
  Split out;
  out.top = s.maxCoeff(&out.place);
  out.others.resize(s.size() - 1);
  out.others << s.head(out.place), s.tail(s.size() - out.place - 1);
  return out;
}

// Both forecasts of one query's prompt at N keys.
struct Forecast {
  Crowd::Weights drawn, gaussian;
};

struct Crowds {
  explicit Crowds(const Split& at)
      : drawn(Crowd::of_scores(at.others, at.top)),
        gaussian(Crowd::gaussian(at.others.mean(), deviation(at.others), at.top)) {}
  [[nodiscard]] Forecast at(double N) const { return {drawn.at(N), gaussian.at(N)}; }
  Crowd drawn, gaussian;
};

template <class Item, class Field>
double median_over(const std::vector<Item>& items, const Field& field) {
  std::vector<double> values;
  for (const Item& item : items) values.push_back(field(item));
  return median(values);
}

ScoreLengthRow length_row(const std::vector<Vector>& scores, Index n) {
  std::vector<Vector> prefixes;
  for (const Vector& s : scores) {
    if (s.size() >= n) prefixes.emplace_back(s.head(n));
  }
  return {.n = n,
          .log_n = std::log(static_cast<double>(n)),
          .tau = median_over(prefixes, deviation),
          .gap_scale = median_over(prefixes, [](const Vector& s) { return gap_scale(s); }),
          .ess = median_over(prefixes, [](const Vector& s) { return weights_of(s).ess; }),
          .top_weight = median_over(prefixes, [](const Vector& s) { return weights_of(s).top; })};
}

std::vector<ScoreLengthRow> length_rows(const std::vector<Vector>& scores) {
  Index longest = 0;
  for (const Vector& s : scores) longest = std::max(longest, s.size());
  std::vector<ScoreLengthRow> rows;
  for (Index n = 16; n < longest; n *= 2) rows.push_back(length_row(scores, n));
  rows.push_back(length_row(scores, longest));
  return rows;
}

// Evenly spaced ones.
std::vector<Vector> few(const std::vector<Vector>& scores) {
  if (scores.size() <= kForecastQueries) return scores;
  std::vector<Vector> out;
  for (std::size_t i = 0; i < kForecastQueries; ++i) {
    out.push_back(scores[i * (scores.size() - 1) / (kForecastQueries - 1)]);
  }
  return out;
}

std::vector<ForecastRow> forecast_rows(const std::vector<Vector>& scores) {
  std::vector<Crowds> crowds;
  for (const Vector& s : scores) crowds.emplace_back(split(s));
  std::vector<ForecastRow> rows;
  for (const double multiple : kMultiples) {
    std::vector<Forecast> found;
    std::vector<double> factors;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const double N = multiple * static_cast<double>(scores[i].size());
      found.push_back(crowds[i].at(N));
      factors.push_back(crowds[i]
                            .drawn.factor_for(weights_of(scores[i]).ess, N)
                            .value_or(std::numeric_limits<double>::infinity()));
    }
    const double factor = median(factors);
    rows.push_back(
        {.n = multiple *
              median_over(scores, [](const Vector& s) { return static_cast<double>(s.size()); }),
         .ess = median_over(found, [](const Forecast& f) { return 1 / f.drawn.H; }),
         .ess_gaussian = median_over(found, [](const Forecast& f) { return 1 / f.gaussian.H; }),
         .needle = median_over(found, [](const Forecast& f) { return f.drawn.needle; }),
         .needle_gaussian = median_over(found, [](const Forecast& f) { return f.gaussian.needle; }),
         .factor = std::isfinite(factor) ? std::optional(factor) : std::nullopt});
  }
  return rows;
}

// Halves whose first one does not vary drift by nothing or without bound.
double drift_of(const Vector& s, Index half) {
  const double moved = s.tail(s.size() - half).mean() - s.head(half).mean();
  return moved == 0 ? 0 : moved / deviation(s.head(half));
}

std::optional<ForecastTest> forecast_test(const std::vector<Vector>& scores) {
  std::vector<ForecastTest> tests;
  for (const Vector& s : scores) {
    if (s.size() < kForecastKeys) continue;
    const Index half = s.size() / 2;
    const Split at = split(s.head(half));
    const auto N = static_cast<double>(s.size());
    const Forecast f = Crowds(at).at(N);
    const double top = s.maxCoeff();
    tests.push_back({.from = half,
                     .to = s.size(),
                     .ess = weights_of(s).ess,
                     .ess_forecast = 1 / f.drawn.H,
                     .ess_gaussian = 1 / f.gaussian.H,
                     .needle = std::exp(at.top - top) * weights_of(s).top,
                     .needle_forecast = f.drawn.needle,
                     .needle_gaussian = f.gaussian.needle,
                     .drift = drift_of(s, half)});
  }
  if (tests.empty()) return std::nullopt;
  const auto over = [&](auto field) {
    return median_over(tests, [&](const ForecastTest& t) { return static_cast<double>(t.*field); });
  };
  return ForecastTest{.from = std::llround(over(&ForecastTest::from)),
                      .to = std::llround(over(&ForecastTest::to)),
                      .ess = over(&ForecastTest::ess),
                      .ess_forecast = over(&ForecastTest::ess_forecast),
                      .ess_gaussian = over(&ForecastTest::ess_gaussian),
                      .needle = over(&ForecastTest::needle),
                      .needle_forecast = over(&ForecastTest::needle_forecast),
                      .needle_gaussian = over(&ForecastTest::needle_gaussian),
                      .drift = median_over(tests, [](const ForecastTest& t) { return *t.drift; })};
}

}  // namespace

double gap_scale(Vector scores) {
  std::sort(scores.begin(), scores.end(), std::greater<>());
  double best = 0;
  for (Index j = 1; j < scores.size(); ++j) {
    best = std::max(best, std::log(static_cast<double>(j + 1)) / (scores(0) - scores(j)));
  }
  return best;
}

std::string drift_text(const ForecastTest& test) {
  if (!test.drift || !(std::abs(*test.drift) >= kForecastDrift)) return "";
  return "the scores of later keys lie " + brief(std::abs(*test.drift), 2) + " deviations " +
         (*test.drift > 0 ? "higher" : "lower") +
         ", so that no draw of the first ones is like them";
}

std::optional<ScoreScale> score_scale(const std::vector<Vector>& scores) {
  std::vector<Vector> varied;
  for (const Vector& s : scores) {
    if (s.size() > 2 && deviation(s) > 0) varied.push_back(s);
    if (deviation(s) > kSharpest) return std::nullopt;
  }
  if (varied.empty()) return std::nullopt;
  ScoreScale out;
  out.c = median_over(varied, [](const Vector& s) {
    return deviation(s) / std::sqrt(std::log(static_cast<double>(s.size())));
  });
  out.gap_scale = median_over(varied, [](const Vector& s) { return gap_scale(s); });
  out.phase = phase(ScoreModel::gaussian(out.c), 1, 1);
  out.lengths = length_rows(varied);
  const std::vector<Vector> chosen = few(varied);
  out.forecast = forecast_rows(chosen);
  out.test = forecast_test(chosen);
  return out;
}

}  // namespace esscher
