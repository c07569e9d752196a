// Assumption 3.3 and Proposition 3.4: concentration of the gradients in V and U.
#include <cmath>

#include "esscher/measure/coordinates.h"
#include "esscher/measure/gaussian.h"
#include "esscher/paper/decay.h"
#include "esscher/paper/statements.h"
#include "esscher/paper/text.h"
#include "esscher/report/vega_lite.h"

namespace esscher::paper {
namespace {

constexpr std::string_view kId = "prop-3.4";
constexpr double kConstantTolerance = 0.01;

Setting setting(const Options& options, std::size_t cell) {
  const double sigma = cell == 1 ? 2 : 1;
  const double c = std::cos(0.6) / 2, s = std::sin(0.6) / 2;
  const Vector spread{{sigma * sigma, sigma * sigma / 2}};
  Setting out{"Gaussian, σ = " + show(sigma),
              sigma,
              {Gaussian(Matrix(spread.asDiagonal())),
               Attention::from_uv(Matrix{{c, -s}, {s, c}}, Matrix{{1.0, 0.5}, {-0.5, 1.0}}),
               Gaussian(Matrix(Matrix::Identity(2, 2)))},
              {}};
  out.study.metrics = {Metric::grad_v, Metric::grad_u};
  out.study.lengths = geometric_lengths(12, options.pick(1, 2, 4));
  out.study.engine = Engine::exact;
  if (cell == 2) {
    out.name = "±1 tokens, σ = 1";
    out.problem.mu = Rademacher(2);
    out.study.lengths = geometric_lengths(options.pick(3, 4, 5), 2);
    out.study.engine = Engine::direct;
    out.study.queries = options.pick(64, 256, 512);
    out.study.replicates = 4;
    out.study.seed = options.seed;
  }
  return out;
}

std::vector<std::string> keys(const Options&) {
  return {"prop-3.4/gaussian sigma=1", "prop-3.4/gaussian sigma=2", "prop-3.4/rademacher"};
}

std::vector<Row> compute(const Options& options, std::size_t cell) {
  return decay_rows(kId, setting(options, cell), Proposition::prop34, options.sign(kId),
                    options.seed);
}

// Rows of the tilted moments of Assumption 3.3, one per (p, q), one column per setting.
Json moment_table(const std::vector<Row>& rows, std::vector<std::string>& columns, bool& finite) {
  std::vector<std::string> names;
  std::map<std::string, std::map<std::string, Json>> values;
  columns = {"moment"};
  for (const Row& row : rows) {
    if (row["kind"] != "hypothesis") continue;
    std::string name = row["name"];
    if (name.rfind("moment ", 0) != 0) continue;
    name = name.substr(7, name.find(" is") - 7);
    const std::string where = row["setting"];
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    if (std::find(columns.begin(), columns.end(), where) == columns.end()) columns.push_back(where);
    values[name][where] = row["value"];
    finite = finite && row["holds"].get<bool>();
  }
  Json table = Json::array();
  for (const std::string& name : names) {
    Json line = Json::array({name});
    for (std::size_t i = 1; i < columns.size(); ++i) line.push_back(values[name][columns[i]]);
    table.push_back(line);
  }
  return table;
}

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string hat = sub("<mover><mi>μ</mi><mo>^</mo></mover>", id("L"));
  const auto gap = [&](const char* parameter) {
    const std::string grad = sub(op("∇"), id(parameter));
    return id("E") + norm2(grad + id("T") + op("[") + hat + op("]") + op("−") + grad + id("T") +
                           op("[") + id("μ") + op("]"));
  };
  const std::string power = sup(id("L"), sub(id("c"), num("2")) + op("/") + sup(id("σ"), num("2")));
  return {math(gap("V") + op("≤") + sub(id("c"), num("1")) + sup(id("σ"), num("6")) +
               frac(id("ln") + id("L"), power) + text(",   ") + gap("U") + op("≤") +
               sub(id("c"), num("1")) + sup(id("σ"), num("12")) +
               frac(sup(paren(id("ln") + id("L")), num("2")), power))};
}

SectionReport report(const Options&, const std::vector<Row>& rows) {
  const std::vector<Decay> decays = read_decays(rows);
  const CommonFit fit_v = fit_common(decays, "grad_v"), fit_u = fit_common(decays, "grad_u");
  bool finite = true;
  std::vector<std::string> columns;
  const Json moments = moment_table(rows, columns, finite);
  Json curves = Json::array(), asymptotes = Json::array(), ratios = Json::array(),
       table = Json::array();
  double constant_error = 0;
  std::string constant_at;
  for (const Decay& c : decays) {
    const std::string what = c.metric == "grad_v" ? "gradient in V" : "gradient in U";
    const CommonFit& fit = c.metric == "grad_v" ? fit_v : fit_u;
    for (std::size_t i = 0; i < c.L.size(); ++i) {
      curves.push_back({{"curve", what + ", " + c.setting},
                        {"L", c.L[i]},
                        {"D", c.D[i]},
                        {"low", number(c.low[i])},
                        {"high", number(c.high[i])}});
      if (std::isfinite(c.constant)) {
        asymptotes.push_back({{"curve", what + ", " + c.setting},
                              {"L", c.L[i]},
                              {"D", c.constant / static_cast<double>(c.L[i])}});
      }
      if (c.L[i] < 2) continue;
      ratios.push_back({{"curve", what + ", " + c.setting},
                        {"L", c.L[i]},
                        {"ratio", c.D[i] / common_bound(fit, c.metric, c.sigma, c.L[i])}});
    }
    const double at_end = c.D.back() * static_cast<double>(c.L.back());
    table.push_back({what, c.setting, std::isfinite(c.lambda) ? Json(c.lambda) : Json(),
                     c.last_exponent(), std::isfinite(c.gamma) ? Json(c.gamma) : Json(),
                     std::isfinite(c.constant) ? Json(c.constant) : Json("none"), at_end,
                     c.engine});
    if (c.engine == "exact" && std::isfinite(c.constant)) {
      const double error = std::abs(at_end / c.constant - 1);
      if (error >= constant_error) constant_error = error, constant_at = what;
    }
  }
  std::string trouble;
  if (!finite) {
    trouble = "a tilted moment of Assumption 3.3 is not finite";
  } else if (constant_error > kConstantTolerance) {
    trouble = "L·D(L) of the " + constant_at + " misses its closed-form limit by " +
              show(100 * constant_error) + " %";
  } else if (!fit_v.holds()) {
    trouble = "the gradient in V exceeds the bound by " + show(fit_v.worst_ratio) + " at " +
              fit_v.worst_at;
  } else if (!fit_u.holds()) {
    trouble = "the gradient in U exceeds the bound by " + show(fit_u.worst_ratio) + " at " +
              fit_u.worst_at;
  }
  const std::string good =
      "Assumption 3.3 holds here with the moments below. The bounds hold with c₁ = " +
      show(fit_v.c1) + ", c₂ = " + show(fit_v.c2) + " for V and c₁ = " + show(fit_u.c1) +
      ", c₂ = " + show(fit_u.c2) + " for U, fitted on L ≤ " + show(fit_v.fit_end) +
      " and tested on longer prompts (at most " +
      show(std::max(fit_v.worst_ratio, fit_u.worst_ratio)) +
      " of the bound). In the fast regime L·D(L) meets its closed-form limit to " +
      show(100 * constant_error) + " %.";
  const Axis length{.column = "L", .title = "prompt length L", .log = true};
  Json section = {
      {"statement",
       "Training reads gradients, so these must concentrate too. If the tilted moments of tokens "
       "and queries are finite (Assumption 3.3), the gradients of attention with respect to V and "
       "to U = KᵀQ approach those of the infinite prompt at the rate of Proposition 3.1, with one "
       "more power of ln L for U."},
      {"hypotheses", hypothesis_lines(rows)},
      {"verdict", verdict("holds-fitted", good, trouble)},
      {"text",
       "The gradient with respect to U carries the covariance of the tilted prompt and the size of "
       "the query, so its error is larger than that of V by a constant, not by a rate. Curves for "
       "Gaussian tokens are exact; those for ±1 tokens are simulated, with 95 % bands."},
      {"formulas", formulas()},
      {"figures",
       {{{"id", "decay"},
         {"caption",
          "Mean squared error of the gradients against prompt length, exact for Gaussian tokens "
          "and simulated for ±1 tokens. Dashed: closed-form constant/L where it exists."},
         {"spec", curve_chart({.data = "p34_curves",
                               .x = length,
                               .y = {.column = "D", .title = "mean squared error", .log = true},
                               .series = "curve",
                               .low = "low",
                               .high = "high",
                               .reference_data = "p34_asymptotes",
                               .points = false,
                               .height = 280})}},
        {{"id", "ratio"},
         {"caption",
          "Error divided by its bound with the fitted constants: below 1 the bound holds."},
         {"spec", curve_chart({.data = "p34_ratios",
                               .x = length,
                               .y = {.column = "ratio", .title = "error / bound", .log = true},
                               .series = "curve",
                               .references = {{'y', 1, "bound"}},
                               .points = false,
                               .height = 280})}}}},
      {"tables",
       {{{"title", "Rates"},
         {"columns",
          {"error of", "tokens", "λ", "exponent", "predicted γ", "limit of L·D", "L·D at the end",
           "engine"}},
         {"rows", table}},
        {{"title", "Assumption 3.3: tilted moments ∬|z′|^p |z|^q dμ_tilted dν, estimated"},
         {"columns", columns},
         {"rows", moments}}}}};
  return {section,
          {{"p34_curves", curves}, {"p34_asymptotes", asymptotes}, {"p34_ratios", ratios}}};
}

}  // namespace

Section prop_3_4() {
  return {kId, "Assumption 3.3 and Proposition 3.4: gradients concentrate", keys, compute, report};
}

}  // namespace esscher::paper
