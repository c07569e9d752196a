#include "esscher/report/concentration_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "esscher/report/vega_lite.h"

namespace esscher {
namespace {

const Axis kLengthAxis = {.column = "L", .title = "prompt length L", .log = true};

Json figure(const std::string& id, Json spec, const std::string& caption) {
  return {{"id", id}, {"spec", std::move(spec)}, {"caption", caption}};
}

Json section(const std::string& id, const std::string& title, const std::string& text,
             Json figures) {
  return {{"id", id}, {"title", title}, {"text", text}, {"figures", std::move(figures)}};
}

// Curves with bands over the length, one per metric.
CurveChart length_chart(const std::string& data, Axis y) {
  CurveChart chart;
  chart.data = data;
  chart.x = kLengthAxis;
  chart.y = std::move(y);
  chart.series = "metric";
  chart.low = "low";
  chart.high = "high";
  return chart;
}

Json curve_row(const StudyRow& row) {
  return {{"L", row.L},
          {"metric", name(row.metric)},
          {"value", number(row.value)},
          {"low", number(row.ci.lo)},
          {"high", number(row.ci.hi)}};
}

std::string brief(double x) { return std::isfinite(x) ? fmt::format("{:.4g}", x) : "-"; }

void add_bound(const BoundReport& bound, const StudyResult& r, CurveChart chart, Json& section,
               Json& page) {
  section["statement"] =
      bound.proposition == Proposition::prop31 ? "Proposition 3.1" : "Proposition 3.4";
  Json hypotheses = Json::array();
  for (const Hypothesis& h : bound.hypotheses) {
    hypotheses.push_back(std::string(h.holds ? "holds: " : "FAILS: ") + h.name + " (" + h.text +
                         ")");
  }
  section["hypotheses"] = std::move(hypotheses);
  const bool all =
      std::all_of(bound.fits.begin(), bound.fits.end(), [](const BoundFit& f) { return f.holds; });
  section["verdict"] = {{"status", bound.fits.empty() ? "info"
                                   : all              ? "holds-fitted"
                                                      : "fails"},
                        {"text", bound.verdict}};
  if (bound.fits.empty()) return;
  // Only the metrics that the proposition is about: another curve may cross the bound freely.
  Json line = Json::array(), bounded = Json::array();
  for (const BoundFit& f : bound.fits) {
    for (const StudyRow& row : r.rows) {
      if (row.metric != f.metric || row.L < 2) continue;
      bounded.push_back(curve_row(row));
      line.push_back({{"L", row.L},
                      {"metric", name(f.metric)},
                      {"value", number(bound_at(f, bound.sigma, row.L))}});
    }
  }
  page["datasets"]["bounded"] = std::move(bounded);
  page["datasets"]["bound"] = std::move(line);
  chart.data = "bounded";
  chart.reference_data = "bound";
  section["figures"].push_back(
      figure("bound", curve_chart(chart),
             "Dashed: the bound with fitted c_1, c_2. Where solid crosses dashed the "
             "fitted shape is wrong."));
}

// Another study of the same lengths, dashed behind this one.
void add_twin(const std::string& id, const StudyResult& twin, const std::string& caption,
              CurveChart chart, Json& section, Json& page) {
  Json line = Json::array();
  for (const StudyRow& row : twin.rows) {
    line.push_back({{"L", row.L}, {"metric", name(row.metric)}, {"value", number(row.value)}});
  }
  page["datasets"][id] = std::move(line);
  chart.reference_data = id;
  section["figures"].push_back(figure(id, curve_chart(chart), caption));
}

void add_curve(const StudyResult& r, const std::optional<BoundReport>& bound,
               const std::optional<StudyResult>& exact, const std::optional<StudyResult>& fit,
               Json& page) {
  Json curve = Json::array(), reference = Json::array();
  bool heavy = false;
  for (const StudyRow& row : r.rows) {
    curve.push_back(curve_row(row));
    if (std::isfinite(row.asymptotic)) {
      reference.push_back(
          {{"L", row.L}, {"metric", name(row.metric)}, {"value", number(row.asymptotic)}});
    }
    heavy = heavy || row.heavy;
  }
  CurveChart chart = length_chart("curve", {.column = "value", .title = "D(L)", .log = true});
  const bool asymptote = !reference.empty();
  if (asymptote) chart.reference_data = "asymptote";
  page["datasets"]["curve"] = std::move(curve);
  page["datasets"]["asymptote"] = std::move(reference);
  const std::string action = heavy ? "The band cannot be trusted where rare queries carry the "
                                     "average: use the exact engine or more queries."
                                   : "Read off the length at which your tolerance is met; `esscher "
                                     "length --eps` gives it.";
  std::string regime = r.regime.text;
  if (std::isfinite(r.regime.lambda)) {
    regime += fmt::format(" (lambda = {:.4g}, gamma = {:.4g})", r.regime.lambda, r.regime.gamma);
  }
  const bool sampled = std::any_of(r.rows.begin(), r.rows.end(),
                                   [](const StudyRow& row) { return row.std_error > 0; });
  const std::string lines =
      std::string(sampled ? "Solid: D(L) with its 95 % band. " : "Solid: D(L), without error. ") +
      (asymptote ? "Dashed: constant/L. " : "The constant of 1/L is infinite here. ");
  Json s = section("curve", "Distance from the limit", r.how + ". " + regime + ".",
                   Json::array({figure("curve", curve_chart(chart), lines + action)}));
  if (exact) {
    add_twin("exact", *exact,
             "Dashed: the exact engine, without sampling. Where it leaves the band, believe it and "
             "not the band.",
             chart, s, page);
  }
  if (fit) {
    add_twin("gaussian-fit", *fit,
             "Dashed: the Gaussian with the mean and covariance of the tokens. Where the two part, "
             "lengths computed for a Gaussian do not serve these tokens.",
             chart, s, page);
  }
  if (bound) add_bound(*bound, r, chart, s, page);
  page["sections"].push_back(std::move(s));
}

void add_exponents(const StudyResult& r, Json& page) {
  Json local = Json::array(), shapes = Json::array(), slopes = Json::array();
  for (const MetricFit& f : r.fits) {
    slopes.push_back(
        Json::array({name(f.metric), fmt::format("{:.4f}", f.power.slope),
                     fmt::format("[{:.4f}, {:.4f}]", f.power.ci.lo, f.power.ci.hi),
                     fmt::format("{:.4f}", f.local.back().exponent), brief(r.regime.gamma)}));
    for (const LocalExponent& e : f.local) {
      local.push_back({{"L", number(e.L)},
                       {"metric", name(f.metric)},
                       {"exponent", number(e.exponent)},
                       {"low", number(e.exponent - 1.96 * e.std_error)},
                       {"high", number(e.exponent + 1.96 * e.std_error)}});
    }
    for (const ShapeFit& s : f.shapes) {
      shapes.push_back(
          Json::array({name(f.metric), name(s.shape), fmt::format("{:.4g}", std::exp(s.log_c)),
                       fmt::format("{:.4f}", s.g), fmt::format("{:.3f}", s.weight)}));
    }
  }
  if (local.empty()) return;
  page["datasets"]["local"] = std::move(local);
  CurveChart chart = length_chart("local", {.column = "exponent", .title = "-d log D / d log L"});
  chart.references.push_back({'y', 1.0, "1/L"});
  if (r.regime.gamma < 1) chart.references.push_back({'y', r.regime.gamma, "predicted"});
  Json s = section("exponents", "How fast", "The exponent between neighbouring lengths.",
                   Json::array({figure(
                       "local", curve_chart(chart),
                       "At 1 doubling the prompt halves the error; below 1 longer prompts buy less "
                       "than that.")}));
  s["tables"] = Json::array(
      {{{"title", "One slope for all lengths; the last local exponent beside the predicted one"},
        {"columns", {"metric", "slope", "95 % interval", "last exponent", "predicted"}},
        {"rows", std::move(slopes)}}});
  if (!shapes.empty()) {
    s["tables"].push_back({{"title", "Shapes compared by AIC: the weight says how likely each is"},
                           {"columns", {"metric", "shape", "c", "g", "weight"}},
                           {"rows", std::move(shapes)}});
  }
  page["sections"].push_back(std::move(s));
}

void add_sigma(const std::vector<SigmaPoint>& sigmas, Json& page) {
  if (sigmas.empty()) return;
  Json measured = Json::array(), predicted = Json::array();
  for (const SigmaPoint& p : sigmas) {
    const double s2 = p.sigma * p.sigma;
    measured.push_back({{"sigma2", s2},
                        {"metric", name(p.metric)},
                        {"exponent", number(p.exponent)},
                        {"low", number(p.exponent - 1.96 * p.std_error)},
                        {"high", number(p.exponent + 1.96 * p.std_error)}});
    predicted.push_back(
        {{"sigma2", s2}, {"metric", name(p.metric)}, {"exponent", number(p.gamma)}});
  }
  page["datasets"]["sigma"] = std::move(measured);
  page["datasets"]["sigma_predicted"] = std::move(predicted);
  CurveChart chart = length_chart("sigma", {.column = "exponent", .title = "measured exponent"});
  chart.x = {.column = "sigma2", .title = "sigma squared"};
  chart.reference_data = "sigma_predicted";
  page["sections"].push_back(section(
      "sigma", "The exponent against sigma squared",
      "Tokens scaled by sigma; the exponent on the last two decades of lengths. c_2 = exponent * "
      "sigma^2.",
      Json::array({figure(
          "sigma", curve_chart(chart),
          "Dashed: the predicted exponent. Keep sigma squared left of the bend to have errors "
          "that fall like 1/L.")})));
}

void add_split(const StudyResult& r, Json& page) {
  Json split = Json::array(), frozen = Json::array(), figures = Json::array();
  Json table = Json::array();
  for (const StudyRow& row : r.rows) {
    if (row.metric != r.rows.front().metric) break;
    table.push_back(
        Json::array({row.L, brief(row.value), brief(row.ess), brief(100 * row.bias2 / row.value),
                     brief(row.shrink()), brief(row.frozen)}));
    if (std::isfinite(row.bias2)) {
      split.push_back({{"L", row.L}, {"part", "bias"}, {"value", number(row.bias2)}});
      split.push_back({{"L", row.L}, {"part", "variance"}, {"value", number(row.variance)}});
    }
    if (std::isfinite(row.frozen))
      frozen.push_back({{"L", row.L}, {"fraction", number(row.frozen)}});
  }
  if (!split.empty()) {
    page["datasets"]["split"] = std::move(split);
    CurveChart chart;
    chart.data = "split";
    chart.x = kLengthAxis;
    chart.y = {.column = "value", .title = "part of D(L)", .log = true};
    chart.series = "part";
    figures.push_back(
        figure("split", curve_chart(chart),
               "Bias: a finite prompt shrinks the operator. Averaging several prompts removes the "
               "variance and never the bias."));
  }
  if (!frozen.empty()) {
    page["datasets"]["frozen"] = std::move(frozen);
    CurveChart chart;
    chart.data = "frozen";
    chart.x = kLengthAxis;
    chart.y = {.column = "fraction", .title = "queries with L < exp(tau^2)"};
    figures.push_back(figure(
        "frozen", curve_chart(chart),
        "The frozen fraction: these queries see one token instead of the prompt. If it is not "
        "small, shrink the scores before lengthening the prompt."));
  }
  Json s =
      section("why", "Why", "Bias and variance, and the queries that are too sharp for the length.",
              std::move(figures));
  s["tables"] = Json::array(
      {{{"title",
         fmt::format("{}: the tokens a query really sees (ESS), the bias in % of D(L), the "
                     "factor that shrinks the operator, the frozen fraction",
                     name(r.rows.front().metric))},
        {"columns", {"L", "D(L)", "ESS", "bias %", "shrink", "frozen"}},
        {"rows", std::move(table)}}});
  page["sections"].push_back(std::move(s));
}

void add_queries(const StudyResult& r, Json& page) {
  Json values = Json::array();
  std::vector<double> errors;
  for (double v : r.query_values) {
    if (!(v > 0) || !std::isfinite(v)) continue;
    values.push_back({{"log10_error", std::log10(v)}});
    errors.push_back(v);
  }
  if (values.size() < 2) return;
  std::sort(errors.begin(), errors.end(), std::greater<>());
  const auto worst = static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, errors.size() / 20));
  const double share = std::accumulate(errors.begin(), errors.begin() + worst, 0.0) /
                       std::accumulate(errors.begin(), errors.end(), 0.0);
  page["datasets"]["queries"] = std::move(values);
  HistogramChart chart;
  chart.data = "queries";
  chart.x = {.column = "log10_error", .title = "log10 of the error of one query"};
  page["sections"].push_back(section(
      "queries", "Over queries", fmt::format("Errors of single queries at L = {}.", r.query_length),
      Json::array(
          {figure("queries", histogram_chart(chart),
                  fmt::format("The worst 5 % of these {} queries carry {:.0f} % of the average; {}",
                              errors.size(), 100 * share,
                              share > 0.3 ? "it is about few queries, so ask `esscher length "
                                            "--quantile 0.95` for the length that serves most."
                                          : "it speaks for most queries, so `esscher length "
                                            "--eps` serves them too."))})));
}

}  // namespace

Json concentration_page(const StudyResult& result, const std::vector<SigmaPoint>& sigmas,
                        const std::optional<BoundReport>& bound,
                        const std::optional<StudyResult>& exact,
                        const std::optional<StudyResult>& fit) {
  Json page = {{"title", "Concentration of a prompt"},
               {"lead",
                "How far softmax attention on a prompt of L tokens is from its infinite-prompt "
                "limit, and how fast "
                "it gets there."},
               {"sections", Json::array()},
               {"datasets", Json::object()}};
  add_curve(result, bound, exact, fit, page);
  add_exponents(result, page);
  add_sigma(sigmas, page);
  add_split(result, page);
  add_queries(result, page);
  return page;
}

}  // namespace esscher
