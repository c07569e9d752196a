// Assumption 3.3 and Proposition 3.4: concentration of the gradients in V and U.
#include <algorithm>
#include <cmath>

#include "esscher/base/number_text.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/shared_decay.h"
#include "esscher/paper/statements.h"
#include "esscher/paper/verdicts.h"

namespace esscher::paper {
namespace {

// ---- cells

Cells<DecayRow> cells(const Options& options) {
  CellList<DecayRow> list;
  const auto add = [&](const std::string& key, Setting setting) {
    setting.study.metrics = {Metric::grad_v, Metric::grad_u};
    list.add("prop-3.4/" + key, [setting, seed = options.seed] {
      return decay_rows(setting, Proposition::prop34, seed);
    });
  };
  add("gaussian sigma=1", gaussian_setting("Gaussian, σ = 1", 1, options));
  add("gaussian sigma=2", gaussian_setting("Gaussian, σ = 2", 2, options));
  add("rademacher", coin_setting(options));
  return std::move(list).cells();
}

// ---- numbers

const char* gradient_name(Metric metric) {
  return metric == Metric::grad_v ? "gradient in V" : "gradient in U";
}

// A tilted moment of Assumption 3.3 in one setting.
struct Moment {
  std::string name;  // "p=4 q=0"
  std::string setting;
  double sigma = 1;
  double value = 0;
  bool finite = false;
};

std::vector<Moment> moments_of(std::span<const DecayRow> rows) {
  constexpr std::string_view kPrefix = "moment ";
  std::vector<Moment> out;
  for (const DecayRow& row : rows) {
    if (row.kind != DecayKind::hypothesis) continue;
    const std::string& name = row.name.value();  // "moment p=4 q=0 is finite"
    if (name.rfind(kPrefix, 0) != 0) continue;
    out.push_back({.name = name.substr(kPrefix.size(), name.find(" is") - kPrefix.size()),
                   .setting = row.setting.value(),
                   .sigma = row.sigma.value_or(std::nan("")),
                   .value = row.value.value_or(std::nan("")),
                   .finite = row.holds.value()});
  }
  return out;
}

// Moments of the settings whose D(L) is exact. Those of simulated settings are estimates from few
// queries, too blunt to judge.
std::vector<Judged> exact_moments(std::span<const Moment> moments, std::span<const Decay> curves) {
  std::vector<Judged> out;
  for (const Moment& m : moments) {
    const bool exact = std::any_of(curves.begin(), curves.end(), [&](const Decay& c) {
      return c.setting == m.setting && c.engine == Engine::exact;
    });
    if (!exact) continue;
    out.push_back(against_independent("the tilted moment " + m.name + " of " + m.setting, m.value,
                                      0, kExactTolerance,
                                      independent("moment " + m.name, m.sigma, 0)));
  }
  return out;
}

// The moments of the first setting taken for those of the largest sigma.
std::vector<Judged> false_moments(std::span<const Moment> moments, std::span<const Decay> curves) {
  std::vector<Judged> out;
  if (curves.empty()) return out;
  const Decay& last =
      *std::max_element(curves.begin(), curves.end(),
                        [](const Decay& x, const Decay& y) { return x.sigma < y.sigma; });
  for (const Moment& m : moments) {
    if (m.setting != curves.front().setting || m.name.rfind("p=0", 0) == 0) continue;
    out.push_back(against_independent(
        "the tilted moment " + m.name + " of " + m.setting + " taken for that of " + last.setting,
        m.value, 0, kExactTolerance, independent("moment " + m.name, last.sigma, 0)));
  }
  return out;
}

}  // namespace

// ---- verdict

Verdict judge_prop_3_4(const DecayNumbers& n) {
  const CommonFit fit_v = fit_common(n.curves, Metric::grad_v);
  const CommonFit fit_u = fit_common(n.curves, Metric::grad_u);
  return verdict_of(decay_checks(n), VerdictStatus::holds_fitted,
                    "The bounds hold with c₁ = " + brief(fit_v.c1) + ", c₂ = " + brief(fit_v.c2) +
                        " for V and c₁ = " + brief(fit_u.c1) + ", c₂ = " + brief(fit_u.c2) +
                        " for U, fitted on L ≤ " + brief(fit_v.fit_end) +
                        "; on all longer prompts they are at least " +
                        brief(1 / std::max(fit_v.worst_ratio, fit_u.worst_ratio), 3) +
                        " times as large as the errors.");
}

std::string gradient_caption(std::span<const Decay> curves) {
  std::string drawn;
  for (const Decay& c : curves) {
    if (c.engine == Engine::exact || drawn.find(c.setting) != std::string::npos) continue;
    drawn += (drawn.empty() ? "" : ", ") + c.setting;
  }
  return "Mean squared error of the gradients against prompt length, computed without sampling" +
         (drawn.empty() ? "." : "; simulated: " + drawn + ".");
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const auto gap = [](const char* parameter) {
    const std::string grad = sub(op("∇"), id(parameter));
    return id("E") +
           norm2(grad + operator_on(empirical_law()) + op("−") + grad + operator_on(id("μ")));
  };
  const std::string power = sup(id("L"), sub(id("c"), num("2")) + op("/") + sup(id("σ"), num("2")));
  return {math(gap("V") + op("≤") + sub(id("c"), num("1")) + sup(id("σ"), num("6")) +
               frac(fn("ln") + id("L"), power) + and_also() + gap("U") + op("≤") +
               sub(id("c"), num("1")) + sup(id("σ"), num("12")) +
               frac(sup(paren(fn("ln") + id("L")), num("2")), power))};
}

std::vector<Figure> figures(std::span<const Decay> curves) {
  const Axis length{.column = "L", .title = "prompt length L", .log = true};
  return {
      {.id = "decay",
       .chart = CurveChart{.data = "p34_curves",
                           .x = length,
                           .y = {.column = "D", .title = "mean squared error", .log = true},
                           .series = "tokens",
                           .low = "low",
                           .high = "high",
                           .reference_data = "p34_asymptotes",
                           .reference_title = "constant/L in closed form",
                           .facet = "gradient",
                           .points = false},
       .caption = gradient_caption(curves)},
      {.id = "ratio",
       .chart = CurveChart{.data = "p34_ratios",
                           .x = length,
                           .y = {.column = "ratio", .title = "error / bound", .log = true},
                           .series = "tokens",
                           .references = {{'y', 1, "bound"}},
                           .facet = "gradient",
                           .points = false},
       .caption = "Error divided by its bound with the fitted constants: below 1 the bound holds.",
       .read = true}};
}

// "p = 4, q = 0" of "p=4 q=0".
std::string in_words(std::string_view moment) {
  std::string out;
  for (const char c : moment) {
    out += c == '=' ? " = " : c == ' ' ? ", " : std::string(1, c);
  }
  return out;
}

// One line per (p, q), one column per setting.
Sheet moment_sheet(std::span<const Moment> moments) {
  Sheet sheet{.columns = {"moment"}, .rows = {}};
  std::vector<std::string> names;
  std::map<std::pair<std::string, std::string>, Value> values;
  const auto note = [](std::vector<std::string>& list, const std::string& word) {
    if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(word);
  };
  for (const Moment& m : moments) {
    note(names, m.name);
    note(sheet.columns, m.setting);
    values[{m.name, m.setting}] = m.value;
  }
  for (const std::string& name : names) {
    Record row{in_words(name)};
    for (std::size_t i = 1; i < sheet.columns.size(); ++i) {
      row.push_back(values[{name, sheet.columns[i]}]);
    }
    sheet.add_row(std::move(row));
  }
  return sheet;
}

Sheet rate_sheet(std::span<const Decay> curves) {
  Sheet sheet{.columns = {"error of", "tokens", "λ", "exponent", "predicted γ", "limit of L·D",
                          "L·D at the end", "engine"},
              .rows = {}};
  for (const Decay& c : curves) {
    sheet.add(gradient_name(c.metric), c.setting, c.lambda, c.last_exponent(), c.gamma,
              std::isfinite(c.constant) ? cell(c.constant) : cell("none"), c.scaled_end(),
              c.engine);
  }
  return sheet;
}

SectionReport report(const Options&, std::span<const DecayRow> rows) {
  const std::vector<Decay> curves = read_decays(rows);
  const std::vector<Moment> moments = moments_of(rows);
  const DecayNumbers n{.curves = curves,
                       .known = exact_moments(moments, curves),
                       .known_controls = false_moments(moments, curves)};
  DecaySheets sheets("tokens", "gradient");
  for (const Decay& c : curves) {
    sheets.add(c.setting, c, fit_common(curves, c.metric), gradient_name(c.metric));
  }
  Section section;
  section.statement =
      "Training reads gradients, so these must concentrate too. If the tilted moments of tokens "
      "and queries are finite (Assumption 3.3), the gradients of attention with respect to V and "
      "to U = KᵀQ approach those of the infinite prompt at the rate of Proposition 3.1, with one "
      "more power of ln L for U.";
  section.verdict = judge_prop_3_4(n);
  section.text =
      "The gradient with respect to U carries the covariance of the tilted prompt and the size of "
      "the query, that with respect to V the mean alone. Curves for Gaussian tokens are exact; "
      "those "
      "for ±1 tokens are simulated, with 95 % bands.";
  section.formulas = formulas();
  section.figures = figures(curves);
  section.tables = {judged_table(decay_checks(n)),
                    {.title = "Rates", .sheet = rate_sheet(curves)},
                    {.title = "Assumption 3.3: tilted moments ∬|z′|^{p} |z|^{q} dμ_{a}(z′) dν(z) "
                              "at a = Uz, "
                              "judged for Gaussian tokens; estimated for ±1 tokens and not judged",
                     .sheet = moment_sheet(moments)}};
  return {.section = std::move(section),
          .datasets = {{"p34_curves", std::move(sheets.curves)},
                       {"p34_asymptotes", std::move(sheets.asymptotes)},
                       {"p34_ratios", std::move(sheets.ratios)}},
          .hypotheses = stated_hypotheses(rows),
          .checks = decay_checks(n)};
}

}  // namespace

Statement prop_3_4() {
  return make_statement<DecayRow>(
      "prop-3.4", "Assumption 3.3 and Proposition 3.4: gradients concentrate", cells, report);
}

}  // namespace esscher::paper
