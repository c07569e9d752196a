#include "esscher/paper/shared_decay.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "esscher/base/length_grid.h"
#include "esscher/base/number_text.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/gaussian.h"

namespace esscher::paper {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double log_ratio(std::int64_t to, std::int64_t from) {
  return std::log(static_cast<double>(to) / static_cast<double>(from));
}

// Visits the lengths >= 2 of the curves of this metric.
template <class Visit>
void each_point(std::span<const Decay> curves, Metric metric, Visit&& visit) {
  for (const Decay& c : curves) {
    if (c.metric != metric) continue;
    for (std::size_t i = 0; i < c.L.size(); ++i) {
      if (c.L[i] >= 2) visit(c, i);
    }
  }
}

// Adds the value of one setting.
void add_setting(StatedHypothesis& line, const DecayRow& row) {
  line.values.emplace_back(row.setting.value(), row.value.value_or(kNaN));
  line.holds = line.holds.value_or(true) && row.holds.value();
}

// "Tokens are centred." or with the range of its values.
std::string sentence_of(const StatedHypothesis& line) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const auto& [setting, value] : line.values) {
    low = std::fmin(low, value);
    high = std::fmax(high, value);
  }
  std::string out = line.text;
  if (!*line.holds) out += ", which does not hold everywhere";
  if (!(low <= high)) return out + ".";
  if (low == high) return low == 0 ? out + "." : out + ": it is " + brief(low) + ".";
  return out + ": it lies between " + brief(low) + " and " + brief(high) + " over these tokens.";
}

}  // namespace

Setting gaussian_setting(std::string name, double sigma, const Options& options) {
  const double c = std::cos(0.6) / 2, s = std::sin(0.6) / 2;
  const Vector spread{{sigma * sigma, sigma * sigma / 2}};
  Setting out{.name = std::move(name),
              .sigma = sigma,
              .problem = {.mu = Gaussian(Matrix(spread.asDiagonal())),
                          .attention = Attention::from_uv(Matrix{{c, -s}, {s, c}},
                                                          Matrix{{1.0, 0.5}, {-0.5, 1.0}}),
                          .nu = Gaussian(Matrix(Matrix::Identity(2, 2)))},
              .study = {}};
  out.study.lengths = length_grid(1, 1000000000000, options.pick(1, 2, 4));
  out.study.engine = Engine::exact;
  return out;
}

Setting coin_setting(const Options& options) {
  Setting out = gaussian_setting("±1 tokens, σ = 1", 1, options);
  out.problem.mu = Rademacher(2);
  out.study.lengths = length_grid(1, options.pick<std::int64_t>(1000, 10000, 100000), 2);
  out.study.engine = Engine::direct;
  // So many that an error of D beyond a fifth would be noticed.
  out.study.queries = options.pick(4096, 8192, 8192);
  out.study.replicates = 2;
  out.study.seed = options.seed;
  return out;
}

std::vector<DecayRow> decay_rows(const Setting& setting, Proposition proposition,
                                 std::uint64_t seed) {
  const StudyResult result = study(setting.problem, setting.study);
  std::vector<DecayRow> rows;
  for (const StudyRow& r : result.rows) {
    rows.push_back({.kind = DecayKind::point,
                    .setting = setting.name,
                    .sigma = setting.sigma,
                    .lambda = result.regime.lambda,
                    .gamma = result.regime.gamma,
                    .metric = r.metric,
                    .L = Length(r.L),
                    .D = r.value,
                    .std_error = r.std_error,
                    .low = r.ci.lo,
                    .high = r.ci.hi,
                    .constant = r.asymptotic * static_cast<double>(r.L),
                    .engine = r.engine});
  }
  const BoundReport bound = check_bound(proposition, setting.problem, result, seed);
  for (const Hypothesis& h : bound.hypotheses) {
    rows.push_back({.kind = DecayKind::hypothesis,
                    .setting = setting.name,
                    .sigma = setting.sigma,
                    .name = h.name,
                    .holds = h.holds,
                    .value = h.value,
                    .text = h.text});
  }
  for (const BoundFit& fit : bound.fits) {
    rows.push_back({.kind = DecayKind::fit,
                    .setting = setting.name,
                    .sigma = setting.sigma,
                    .metric = fit.metric,
                    .holds = fit.holds,
                    .c1 = fit.c1,
                    .c2 = fit.c2,
                    .fitted_up_to = fit.fitted_up_to,
                    .worst_ratio = fit.worst_ratio});
  }
  return rows;
}

double Decay::last_exponent() const {
  std::size_t i = L.size() - 1;
  while (i > 0 && L[i] * 100 > L.back()) --i;
  return -std::log(D.back() / D[i]) / log_ratio(L.back(), L[i]);
}

double Decay::scaled_end() const { return D.back() * static_cast<double>(L.back()); }

std::vector<Decay> read_decays(std::span<const DecayRow> rows) {
  std::vector<Decay> out;
  for (const DecayRow& row : rows) {
    if (row.kind != DecayKind::point) continue;
    if (out.empty() || out.back().setting != row.setting || out.back().metric != row.metric) {
      out.push_back({.setting = row.setting.value(),
                     .metric = row.metric.value(),
                     .sigma = row.sigma.value(),
                     .lambda = row.lambda.value_or(kNaN),
                     .gamma = row.gamma.value_or(kNaN),
                     .constant = row.constant.value_or(kNaN),
                     .engine = row.engine.value()});
    }
    Decay& curve = out.back();
    curve.L.push_back(row.L.value().count());
    curve.D.push_back(row.D.value());
    curve.std_error.push_back(row.std_error.value_or(kNaN));
    curve.low.push_back(row.low.value_or(kNaN));
    curve.high.push_back(row.high.value_or(kNaN));
  }
  return out;
}

double common_bound(const CommonFit& fit, Metric metric, double sigma, std::int64_t L) {
  BoundFit one;
  one.c1 = fit.c1;
  one.c2 = fit.c2;
  if (metric == Metric::grad_u) one.sigma_power = 12, one.log_power = 2;
  return bound_at(one, sigma, L);
}

CommonFit fit_common(std::span<const Decay> curves, Metric metric) {
  CommonFit fit;
  double longest = 2;
  for (const Decay& c : curves) longest = std::max(longest, static_cast<double>(c.L.back()));
  fit.fit_end = std::llround(std::sqrt(longest));
  fit.c2 = std::numeric_limits<double>::infinity();
  each_point(curves, metric, [&](const Decay& c, std::size_t i) {
    // The shortest prompts fall slower than any power; c1 takes care of them.
    if (c.L[i] < 10 || i + 1 >= c.L.size() || c.L[i + 1] > fit.fit_end) return;
    const double slope = -std::log(c.D[i + 1] / c.D[i]) / log_ratio(c.L[i + 1], c.L[i]);
    fit.c2 = -worse(-fit.c2, -slope * c.sigma * c.sigma);
  });
  fit.c1 = 1;
  double c1 = 0;
  each_point(curves, metric, [&](const Decay& c, std::size_t i) {
    if (c.L[i] > fit.fit_end) return;
    c1 = worse(c1, c.high[i] / common_bound(fit, metric, c.sigma, c.L[i]));
  });
  fit.c1 = c1;
  each_point(curves, metric, [&](const Decay& c, std::size_t i) {
    if (c.L[i] <= fit.fit_end) return;
    const double ratio = c.low[i] / common_bound(fit, metric, c.sigma, c.L[i]);
    if (!is_worse(ratio, fit.worst_ratio)) return;
    fit.worst_ratio = ratio;
    fit.worst_at = c.setting + ", L = " + brief(c.L[i]);
  });
  return fit;
}

std::vector<StatedHypothesis> stated_hypotheses(std::span<const DecayRow> rows) {
  std::vector<StatedHypothesis> lines;
  for (const DecayRow& row : rows) {
    if (row.kind != DecayKind::hypothesis) continue;
    const std::string& name = row.name.value();
    if (name.rfind("moment", 0) == 0) continue;  // these have a table of their own
    if (name == "L >= 2") continue;              // said below, once
    const std::string text = hypothesis_words(name);
    auto line = std::find_if(lines.begin(), lines.end(),
                             [&](const StatedHypothesis& l) { return l.text == text; });
    if (line == lines.end()) line = lines.insert(line, {.text = text});
    add_setting(*line, row);
  }
  for (StatedHypothesis& line : lines) line.text = sentence_of(line);
  lines.push_back({.text = "L is at least 2: at L = 1 the bound reads 0, so L = 1 is measured and "
                           "left out of the test.",
                   .values = {{"smallest L of the test", 2}}});
  return lines;
}

DecaySheets::DecaySheets(const std::string& series, const std::string& panel)
    : curves{.columns = {series, panel, "L", "D", "low", "high"}, .rows = {}},
      asymptotes{.columns = {series, panel, "L", "D"}, .rows = {}},
      ratios{.columns = {series, panel, "L", "ratio"}, .rows = {}} {}

void DecaySheets::add(const std::string& label, const Decay& c, const CommonFit& fit,
                      const std::string& panel) {
  for (std::size_t i = 0; i < c.L.size(); ++i) {
    curves.add(label, panel, c.L[i], c.D[i], c.low[i], c.high[i]);
    if (std::isfinite(c.constant)) {
      asymptotes.add(label, panel, c.L[i], c.constant / static_cast<double>(c.L[i]));
    }
    if (c.L[i] < 2) continue;
    ratios.add(label, panel, c.L[i], c.D[i] / common_bound(fit, c.metric, c.sigma, c.L[i]));
  }
}

}  // namespace esscher::paper
