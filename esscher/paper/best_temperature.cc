// The best factor on the scores of a head for in-context regression, at each length. The head is the
// one that an infinite prompt asks for: U = alpha I on the features, the label read with 1/alpha.
#include <cmath>

#include "esscher/base/number_text.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/temperature.h"
#include "esscher/risk/temperature.h"
#include "esscher/task/regression.h"

namespace esscher::paper {
namespace {

// ---- setting

struct Setting {
  std::int64_t d;
  double alpha;
};
constexpr Setting kSettings[] = {{1, 0.25}, {1, 0.5}, {2, 0.5}, {5, 0.5}};
constexpr std::int64_t kLengths[] = {10, 100, 1000, 10000};

std::string name_of(std::int64_t d, double alpha) {
  return "d = " + std::to_string(d) + ", α = " + brief(alpha);
}

Readout head_of(const Setting& s) {
  Readout head = Readout::zero(s.d + 1);
  head.U.topLeftCorner(s.d, s.d) = s.alpha * Matrix::Identity(s.d, s.d);
  head.r(s.d) = 1 / s.alpha;
  return head;
}

// ---- rows and cells

struct BestRow {
  std::int64_t d = 1;
  double alpha = 1;
  std::int64_t L = 1;
  double factor = 0, factor_error = 0;
  double limit_factor = 0;
  double gain = 0;  // relative: how much of the risk the best factor saves

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("d", row.d, "", "features of the task");
    column("alpha", row.alpha, "", "size of U; labels are read with 1/alpha");
    column("L", row.L, "tokens", "length of the prompt");
    column("factor", row.factor, "", "best factor on the scores; nan if there is none");
    column("factor_error", row.factor_error, "", "standard error of the best factor");
    column("limit_factor", row.limit_factor, "", "the best factor of an infinite prompt");
    column("gain", row.gain, "", "share of the risk that the best factor saves");
  }
};

BestRow best_row(const Setting& s, std::int64_t L, const RiskOptions& options) {
  const LinearRegressionTask task = LinearRegressionTask::isotropic(s.d);
  const std::vector<Readout> heads{head_of(s)};
  const BestFactor best = best_factor(task, heads, ModelKind::softmax, Length(L), options);
  const BestFactor limit =
      best_factor(task, heads, ModelKind::softmax, Length::infinity(), options);
  BestRow row{.d = s.d,
              .alpha = s.alpha,
              .L = L,
              .factor = best.factor.value_or(std::nan("")),
              .factor_error = best.std_error,
              .limit_factor = limit.factor.value_or(std::nan(""))};
  const auto risk_at = [&](double f) {
    return risk(task, at_factor(heads, f), ModelKind::softmax, Length(L), options).value;
  };
  row.gain = 1 - risk_at(row.factor) / risk_at(1);
  return row;
}

Cells<BestRow> cells(const Options& options) {
  CellList<BestRow> list;
  for (const Setting& s : kSettings) {
    for (const std::int64_t L : kLengths) {
      const RiskOptions risk{.log2_nodes = options.pick(11, 13, 15),
                             .stream = Stream(options.seed).split(73)};
      list.add("best-temperature/d=" + std::to_string(s.d) + ", alpha=" + brief(s.alpha) +
                   "/L=" + std::to_string(L),
               [s, L, risk] { return std::vector<BestRow>{best_row(s, L, risk)}; });
    }
  }
  return std::move(list).cells();
}

// ---- numbers

std::vector<BestTemperature> numbers_of(std::span<const BestRow> rows) {
  std::vector<BestTemperature> out;
  for (const Setting& s : kSettings) {
    BestTemperature n{.d = s.d, .alpha = s.alpha};
    for (const BestRow& row : rows) {
      if (row.d != s.d || row.alpha != s.alpha) continue;
      n.L.push_back(row.L);
      n.factor.push_back(row.factor);
      n.error.push_back(row.factor_error);
    }
    out.push_back(n);
  }
  return out;
}

}  // namespace

// ---- verdict

// R_L(f) = R_inf(f) + C(f)/L with R_inf = (f - 1)^2 E|x|^2 / 2 and, by E H = e^{tau^2}/L,
//   C = E[ e^{f^2 alpha^2 |x|^2} ( (2 f - f^2) |x|^2 + d/alpha^2 ) ] / 2
// so that f* = 1 - C'(1)/(d L), C'(1) = E[ e^{alpha^2 |x|^2} ( alpha^2 |x|^4 + d |x|^2 ) ].
double best_factor_slope(std::int64_t d, double alpha) {
  const auto n = static_cast<double>(d);
  const double g = 1 - 2 * alpha * alpha;
  return std::pow(g, -0.5 * n - 1) * (n + alpha * alpha * (n + 2) / g);
}

namespace {

// "More where prompts are short or features many", point by point.
void add_order(Checks& out, std::span<const BestTemperature> heads) {
  for (const BestTemperature& head : heads) {
    std::vector<double> missing;
    for (const double f : head.factor) missing.push_back(1 - f);
    must_fall(out, "1 − best factor, " + name_of(head.d, head.alpha) + ",", head.L, missing);
    for (const BestTemperature& fewer : heads) {
      if (fewer.alpha != head.alpha || fewer.d >= head.d) continue;
      for (std::size_t i = 0; i < head.L.size(); ++i) {
        out.conditions.push_back({.what = "the best factor of " + name_of(head.d, head.alpha) +
                                          " at L = " + brief(head.L[i]) + " is not below that of " +
                                          name_of(fewer.d, fewer.alpha),
                                  .holds = head.factor[i] < fewer.factor[i]});
      }
    }
  }
}

}  // namespace

Checks best_checks(std::span<const BestTemperature> heads) {
  Checks out;
  add_order(out, heads);
  for (const BestTemperature& head : heads) {
    const std::string where = name_of(head.d, head.alpha);
    for (std::size_t i = 0; i < head.L.size(); ++i) {
      const std::string at = where + ", at L = " + brief(head.L[i]);
      out.figures.push_back(against_independent(
          "the best factor, " + at, head.factor[i], head.error[i], kBestTolerance,
          independent("best factor d=" + std::to_string(head.d), head.alpha, head.L[i])));
      out.conditions.push_back(
          {.what = "the best factor, " + at + ", is not below that of an infinite prompt, 1",
           .holds = head.factor[i] < 1 - kJudgedErrors * head.error[i]});
      if (head.L[i] == 10) {
        Judged control = out.figures.back();
        control.what = "the same against that of an infinite prompt, 1";
        control.expected = 1;
        control.expected_error = 0;
        out.controls.push_back(control);
      }
      const auto length = static_cast<double>(head.L[i]);
      // The slope is a number of its own where the error of the factor does not drown it.
      if (head.L[i] != kBestSlopeLength || head.d > 1 || head.alpha > 0.3) continue;
      const Judged slope{.what = "L (1 − best factor), " + at,
                         .value = length * (1 - head.factor[i]),
                         .error = length * head.error[i],
                         .expected = best_factor_slope(head.d, head.alpha),
                         .source = Source::closed_form,
                         .tolerance = kBestSlopeTolerance};
      out.figures.push_back(slope);
      Judged linear = slope;
      linear.what = "the same against linear attention, d + 1";
      linear.expected = static_cast<double>(head.d) + 1;
      out.controls.push_back(linear);
    }
  }
  return out;
}

Verdict judge_best_temperature(std::span<const BestTemperature> heads) {
  double smallest = 1;
  std::string where;
  for (const BestTemperature& head : heads) {
    for (std::size_t i = 0; i < head.L.size(); ++i) {
      if (head.factor[i] >= smallest) continue;
      smallest = head.factor[i];
      where = name_of(head.d, head.alpha) + " at L = " + brief(head.L[i]);
    }
  }
  return verdict_of(best_checks(heads), VerdictStatus::holds,
                    "In every setting and at every length the best factor on the scores lies below "
                    "the 1 of an infinite prompt; the smallest is " +
                        brief(smallest, 3) + ", for " + where + ".");
}

std::string best_factor_caption(std::span<const BestTemperature> heads) {
  std::size_t all = 0, below = 0;
  for (const BestTemperature& head : heads) {
    all += head.factor.size();
    for (const double factor : head.factor) below += factor < 1 ? 1 : 0;
  }
  return "The factor on the scores with the smallest risk, against prompt length; " +
         (below == all ? "all " + std::to_string(all) + " lie"
                       : std::to_string(below) + " of " + std::to_string(all) + " lie") +
         " below the 1 of an infinite prompt.";
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string g = id("g"), a2 = sup(id("α"), num("2"));
  return {math(sup(id("f"), op("*")) + paren(id("L")) + op("=") + num("1") + op("−") +
               frac(id("κ"), id("L")) + and_also() + id("κ") + op("=") +
               sup(g, op("−") + id("d") + op("/") + num("2") + op("−") + num("1")) +
               paren(id("d") + op("+") + frac(a2 + paren(id("d") + op("+") + num("2")), g)) +
               and_also() + g + op("=") + num("1") + op("−") + num("2") + a2)};
}

std::map<std::string, Sheet> curves(std::span<const BestRow> rows) {
  Sheet best{.columns = {"L", "series", "value"}, .rows = {}};
  for (const BestRow& row : rows) best.add(row.L, name_of(row.d, row.alpha), row.factor);
  return {{"best_factor", std::move(best)}};
}

SectionReport report(const Options&, std::span<const BestRow> rows) {
  const std::vector<BestTemperature> numbers = numbers_of(rows);
  Section section;
  section.statement =
      "A head for in-context regression that is optimal on infinite prompts has scores that are "
      "too "
      "large for finite ones: the factor with the smallest risk lies below 1, by κ/L where "
      "2α² < 1, and more where prompts are short or features many.";
  section.verdict = judge_best_temperature(numbers);
  section.text =
      "Larger scores follow the query better and average over fewer tokens; a finite prompt pays "
      "for the second. For larger α than here the statement can fail on short prompts: where "
      "weights "
      "are so concentrated that the output falls short of its limit, larger scores make up for it. "
      "That is not judged.";
  section.formulas = formulas();
  section.figures = {
      {.id = "best_factor",
       .chart = CurveChart{.data = "best_factor",
                           .x = {.column = "L", .title = "prompt length L", .log = true},
                           .y = {.column = "value", .title = "best factor on the scores"},
                           .series = "series",
                           .references = {{.axis = 'y', .value = 1, .label = "infinite prompt"}}},
       .caption = best_factor_caption(numbers)}};
  PageTable gains{
      .title = "What the best factor saves",
      .sheet = {.columns = {"d", "α", "L", "best factor", "error", "risk saved, %"}, .rows = {}}};
  for (const BestRow& row : rows) {
    gains.sheet.add(row.d, row.alpha, row.L, row.factor, row.factor_error, 100 * row.gain);
  }
  section.tables = {judged_table(best_checks(numbers)), std::move(gains)};
  StatedHypothesis task{.text =
                            "Features and tasks are standard normal, labels have no noise; the "
                            "head has U = αI and reads labels with 1/α.",
                        .values = {{"noise variance", 0.0}}};
  StatedHypothesis fast{.text = "Scores are in the fast regime, 2α² < 1:"};
  for (const Setting& s : kSettings) {
    fast.values.emplace_back("2 alpha^2, d = " + std::to_string(s.d), 2 * s.alpha * s.alpha);
    fast.text += " " + brief(2 * s.alpha * s.alpha) + " for " + name_of(s.d, s.alpha) + ";";
    fast.holds = *fast.holds && 2 * s.alpha * s.alpha < 1;
  }
  fast.text.back() = '.';
  return {.section = std::move(section),
          .datasets = curves(rows),
          .hypotheses = {task, fast},
          .checks = best_checks(numbers)};
}

}  // namespace

Statement best_temperature() {
  return make_statement<BestRow>("best-temperature",
                                 "Finite prompts ask for smaller scores than infinite ones", cells,
                                 report);
}

}  // namespace esscher::paper
