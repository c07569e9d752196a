// Theorem 4.3 on one task after another. The proof compares R_L with R_inf on the whole way of the flow
// on infinite prompts, t -> theta(t): if
//
//   G(L) = sup_t |R_L(theta(t)) - R_inf(theta(t))| <= eps   for L >= L(eps),
//
// the end of that way has at most eps more risk on prompts of L tokens. G, its exponent and L(eps) are
// computed without drawing a token.
#include <algorithm>
#include <cmath>

#include "esscher/base/number_text.h"
#include "esscher/concentration/constant.h"
#include "esscher/paper/general.h"
#include "esscher/paper/general_way.h"
#include "esscher/paper/mathml.h"

namespace esscher::paper {
namespace {

// ---- rows and cells

enum class GeneralKind { path, gap, length, along };

constexpr auto enum_names(GeneralKind) {
  return EnumNames<GeneralKind, 4>{"kind of row",
                                   {{{GeneralKind::path, "path"},
                                     {GeneralKind::gap, "gap"},
                                     {GeneralKind::length, "length"},
                                     {GeneralKind::along, "along"}}}};
}

struct GeneralRow {
  GeneralKind kind = GeneralKind::path;
  std::string task = {};
  std::optional<double> t = {}, u = {}, v = {}, risk = {}, risk_error = {}, slope = {};
  std::optional<std::int64_t> L = {};
  std::optional<double> gap = {}, gap_error = {}, start_gap = {}, linear_gap = {}, length = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("kind", row.kind, "", "what the row holds");
    column("task", row.task, "", "name of the task");
    column("t", row.t, "", "time, or that of the largest gap");
    column("u", row.u, "", "factor of the scores");
    column("v", row.v, "", "factor of the labels that are read");
    column("risk", row.risk, "", "risk on infinite prompts");
    column("risk_error", row.risk_error, "", "its quadrature error");
    column("slope", row.slope, "", "norm of its gradient");
    column("L", row.L, "tokens", "length of the prompt");
    column("gap", row.gap, "",
           "distance of the risk from that of infinite prompts, or its largest");
    column("gap_error", row.gap_error, "", "its quadrature error");
    column("start_gap", row.start_gap, "", "that distance at the start");
    column("linear_gap", row.linear_gap, "", "largest distance from linear attention, L = inf");
    column("length", row.length, "tokens", "where the largest gap is eps");
  }
};

// The sup at L, and the gaps along the way that were looked at.
struct GapRows {
  int at = 0;
  GeneralRow sup;
  std::vector<GeneralRow> along = {};
};

GapRows gap_rows(const Way& way, std::int64_t L) {
  SupSearch search(way, L);
  const Sup sup = search.found();
  GapRows out{.at = sup.at,
              .sup = {.kind = GeneralKind::gap,
                      .task = way.of.name,
                      .t = sup.t,
                      .L = L,
                      .gap = sup.gap,
                      .gap_error = sup.error,
                      .start_gap = search.look(0).gap}};
  double linear_gap = 0;
  for (const auto& [i, seen] : search.seen()) {
    const FlowPoint& point = way.points[static_cast<std::size_t>(i)];
    const Layer linear = head_of(point.theta, ModelKind::linear);
    const double other = layer_risk(way.of.task, linear, Length::infinity(), {}).value;
    linear_gap = std::max(linear_gap, std::abs(seen.risk - other));
    out.along.push_back({.kind = GeneralKind::along,
                         .task = way.of.name,
                         .t = point.t,
                         .L = L,
                         .gap = seen.gap,
                         .gap_error = seen.error});
  }
  if (!way.of.gaussian) out.sup.linear_gap = linear_gap;
  return out;
}

// A length with log G - log eps.
struct Excess {
  double log_L, value;

  Excess(std::int64_t L, double gap)
      : log_L(std::log(static_cast<double>(L))), value(std::log(gap / kGeneralEps)) {}
};

// The real length where G is eps, by chords of logarithms between two of the rows. G falls almost like
// a power of L, so that a few chords end within a ten-thousandth.
double length_of(const Way& way, const std::vector<GapRows>& gaps) {
  const auto beyond = std::ranges::find_if(
      gaps, [](const GapRows& rows) { return rows.sup.gap.value() <= kGeneralEps; });
  if (beyond == gaps.begin() || beyond == gaps.end()) return std::nan("");
  const auto excess = [](const GapRows& rows) {
    return Excess(rows.sup.L.value(), rows.sup.gap.value());
  };
  Excess low = excess(*(beyond - 1)), high = excess(*beyond);
  constexpr double kStill = 1e-4;
  constexpr int kMostChords = 30;
  double before = 0;
  for (int i = 0; i < kMostChords; ++i) {
    const double log_L =
        low.log_L + low.value / (low.value - high.value) * (high.log_L - low.log_L);
    if (std::abs(log_L - before) < kStill) return std::exp(log_L);
    before = log_L;
    const std::int64_t L = std::llround(std::exp(log_L));
    const Excess middle(L, SupSearch(way, L).from(beyond->at).gap);
    (middle.value > 0 ? low : high) = middle;
  }
  return std::nan("");
}

std::vector<GeneralRow> rows_of(const Options& options, const GeneralCase& of) {
  const Way way = way_of(of);
  std::vector<GeneralRow> rows;
  for (int i = 0; i <= kGeneralPoints; i += kGeneralStride) {
    const FlowPoint& p = way.points[static_cast<std::size_t>(i)];
    const Estimate limit = limit_at(way, i);
    rows.push_back({.task = of.name,
                    .t = p.t,
                    .u = p.theta[0],
                    .v = p.theta[1],
                    .risk = limit.value,
                    .risk_error = limit.std_error,
                    .slope = p.gradient_norm});
  }
  using Lengths = std::vector<std::int64_t>;
  const Lengths all{10, 100, 1000, 1000000, 1000000000};
  std::vector<GapRows> gaps;
  for (const std::int64_t L : options.pick(Lengths{1000000, 1000000000}, all, all)) {
    gaps.push_back(gap_rows(way, L));
    rows.push_back(gaps.back().sup);
    rows.insert(rows.end(), gaps.back().along.begin(), gaps.back().along.end());
  }
  if (options.size != Size::tiny) {
    rows.push_back({.kind = GeneralKind::length, .task = of.name, .length = length_of(way, gaps)});
  }
  return rows;
}

using Cases = std::vector<GeneralCase>();

// What the page says of a section.
struct Words {
  std::string_view id, title, setting, why;
};

template <Cases* kCases, const Words* kWords>
Cells<GeneralRow> cells(const Options& options) {
  CellList<GeneralRow> list;
  for (const GeneralCase& of : kCases()) {
    list.add(std::string(kWords->id) + "/" + of.key,
             [options, of] { return rows_of(options, of); });
  }
  return std::move(list).cells();
}

// ---- numbers

// Laplace's method: G falls like L^-gamma / sqrt(log L) in the slow regime, whose scores have the
// deviation u |x|. The second factor adds 1/(2 log L) to the exponent near L.
double slow_exponent(double u, const GeneralRow& a, const GeneralRow& b) {
  const double ell = 0.5 * (std::log(static_cast<double>(a.L.value())) +
                            std::log(static_cast<double>(b.L.value())));
  return predicted_exponent(u * u) + 1 / (2 * ell);
}

GeneralNumbers numbers_of(const GeneralCase& of, std::span<const GeneralRow> rows) {
  GeneralNumbers n{.name = of.name, .key = of.key};
  const GeneralRow *end = nullptr, *last = nullptr;
  for (const GeneralRow& row : rows) {
    if (row.task != of.name) continue;
    if (row.kind == GeneralKind::path) end = &row;
    if (row.kind == GeneralKind::length) n.length = row.length.value();
    if (row.kind != GeneralKind::gap) continue;
    n.at.push_back({row.L.value(), row.gap.value(), row.gap_error.value()});
    if (last != nullptr && of.slow) n.exponent = slow_exponent(end->u.value(), *last, row);
    n.start = row.start_gap.value();
    n.linear = row.linear_gap;
    last = &row;
  }
  if (end != nullptr) {
    n.risk = end->risk.value();
    n.risk_error = end->risk_error.value();
  }
  return n;
}

std::vector<GeneralNumbers> numbers_of(const std::vector<GeneralCase>& cases,
                                       std::span<const GeneralRow> rows) {
  std::vector<GeneralNumbers> out;
  for (const GeneralCase& of : cases) out.push_back(numbers_of(of, rows));
  return out;
}

Exponent last_exponent(const GeneralNumbers& n) {
  const SupGap &a = n.at[n.at.size() - 2], &b = n.at.back();
  return exponent_between(static_cast<double>(a.L), a.gap, a.error, static_cast<double>(b.L), b.gap,
                          b.error);
}

void add_checks(const GeneralNumbers& n, Checks& out) {
  const std::string what = "general " + n.key;
  out.figures.push_back(against_independent("R∞ at the end of the way, " + n.name, n.risk,
                                            n.risk_error, kGeneralTolerance,
                                            independent(what + " risk", 0, 0)));
  std::vector<std::int64_t> lengths;
  std::vector<double> gaps;
  for (const SupGap& at : n.at) {
    lengths.push_back(at.L);
    gaps.push_back(at.gap);
    out.figures.push_back(against_independent(
        "the largest gap at L = " + brief(static_cast<double>(at.L)) + ", " + n.name, at.gap,
        at.error, kGeneralTolerance, independent(what + " sup", 0, at.L)));
  }
  must_fall(out, "the largest gap, " + n.name + ",", lengths, gaps);
  if (n.length) {
    out.figures.push_back(against_independent("L(ε), " + n.name, *n.length, 0, kGeneralTolerance,
                                              independent(what + " length", kGeneralEps, 0)));
  }
  const Exponent measured = last_exponent(n);
  Judged exponent{.what = "the exponent of the largest gap, " + n.name,
                  .value = measured.value,
                  .error = measured.error,
                  .expected = n.exponent,
                  .source = Source::exponent,
                  .tolerance = kGeneralExponentTolerance};
  out.figures.push_back(exponent);
  exponent.what =
      "that exponent against " + std::string(n.exponent == 1 ? "1/2" : "1") + ", " + n.name;
  exponent.expected = n.exponent == 1 ? 0.5 : 1;
  out.controls.push_back(exponent);
  const SupGap& last = n.at.back();
  const auto control = [&](const std::string& control_of, double value) {
    out.controls.push_back(against_independent(control_of + ", " + n.name, value, last.error,
                                               kGeneralTolerance,
                                               independent(what + " sup", 0, last.L)));
  };
  control("the gap at the start instead of the largest", n.start);
  if (n.linear) control("the largest gap to linear attention", *n.linear);
}

}  // namespace

// ---- verdict

Checks general_checks(std::span<const GeneralNumbers> cases) {
  Checks out;
  for (const GeneralNumbers& n : cases) {
    if (n.at.size() < 2) return {};
    add_checks(n, out);
  }
  return out;
}

Verdict judge_general(std::span<const GeneralNumbers> cases) {
  std::string text;
  for (const GeneralNumbers& n : cases) {
    if (n.at.size() < 2) return fails(n.name + ": fewer than two lengths");
    const SupGap &first = n.at.front(), &last = n.at.back();
    const auto at = [](const SupGap& g) {
      return brief(g.gap) + " at L = " + brief(static_cast<double>(g.L));
    };
    text += (text.empty() ? "" : "; ") + n.name + ": from " + at(first) + " to " + at(last) +
            ", with the exponent " + brief(last_exponent(n).value) +
            (n.length ? ", and it is below " + brief(kGeneralEps) +
                            " from L = " + brief(std::ceil(*n.length)) + " on"
                      : "");
  }
  return verdict_of(general_checks(cases), VerdictStatus::holds,
                    "The largest gap on the way falls from length to length. " + text + ".");
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const auto risk = [](const std::string& at) {
    return sub(id("R"), at) + paren(id("θ") + paren(id("t")));
  };
  return {math(id("G") + paren(id("L")) + op("=") + sub(fn("sup"), id("t")) + op("|") +
               risk(id("L")) + op("−") + risk(op("∞")) + op("|") + op("≤") + id("ε") +
               for_long_prompts())};
}

Figure gap_figure(std::string_view data, const std::string& expected) {
  return {.id = "gap",
          .chart = CurveChart{.data = std::string(data),
                              .x = {.column = "L", .title = "prompt length L", .log = true},
                              .y = {.column = "gap", .title = "largest gap G(L)", .log = true},
                              .series = "task",
                              .reference_data = expected,
                              .reference_title = "independent values"},
          .caption =
              "The largest distance between the risks of finite and of infinite prompts on the way "
              "of the flow.",
          .read = true};
}

// The gaps along the way at one length.
Figure along_figure(std::string_view data, std::int64_t L) {
  return {.id = "along",
          .chart = CurveChart{.data = std::string(data) + "_along",
                              .x = {.column = "t", .title = "time t"},
                              .y = {.column = "gap", .title = "gap of the risks", .log = true},
                              .series = "task"},
          .caption = "The distance between the risks of prompts of " +
                     brief(static_cast<double>(L)) +
                     " tokens and of infinite ones along the flow. Its top is G.",
          .read = true};
}

template <Cases* kCases, const Words* kWords>
SectionReport report(const Options&, std::span<const GeneralRow> rows) {
  const std::vector<GeneralNumbers> numbers = numbers_of(kCases(), rows);
  const std::string data(kWords->id), expected = data + "_expected";
  Sheet gaps{.columns = {"task", "L", "gap"}, .rows = {}}, known = gaps;
  Sheet way{.columns = {"task", "t", "u", "v", "R∞", "gradient"}, .rows = {}};
  Sheet along{.columns = {"task", "t", "gap"}, .rows = {}};
  const std::vector<SupGap>& known_at = numbers[0].at;
  const std::int64_t drawn = known_at.empty() ? 0 : known_at[known_at.size() / 2].L;
  std::vector<StatedHypothesis> stated;
  for (const GeneralRow& row : rows) {
    if (row.kind == GeneralKind::gap) gaps.add(row.task, row.L, row.gap);
    if (row.kind == GeneralKind::path) way.add(row.task, row.t, row.u, row.v, row.risk, row.slope);
    if (row.kind == GeneralKind::along && row.L == drawn) along.add(row.task, row.t, row.gap);
  }
  for (const GeneralNumbers& n : numbers) {
    for (const SupGap& at : n.at) {
      known.add(n.name, at.L, independent("general " + n.key + " sup", 0, at.L).value);
    }
  }
  StatedHypothesis setting{.text = std::string(kWords->setting), .holds = {}};
  for (const GeneralCase& of : kCases()) {
    setting.values.emplace_back("start u, " + of.name, of.u);
    setting.values.emplace_back("start v, " + of.name, of.v);
  }
  stated.push_back(std::move(setting));
  stated.push_back({.text = "Tokens are sub-Gaussian given the task. The way is the flow of (u, v) "
                            "on infinite prompts up to t = " +
                            brief(kGeneralEnd) +
                            "; the largest gap is searched among 61 points of it.",
                    .values = {{"t", kGeneralEnd}, {"eps", kGeneralEps}}});
  Section section;
  section.statement =
      "Theorem 4.3 holds for every in-context task with sub-Gaussian tokens, because the risk on "
      "prompts of L tokens tends to that on infinite prompts uniformly on the way of training.";
  section.verdict = judge_general(numbers);
  section.text = std::string(kWords->why);
  section.formulas = formulas();
  section.figures = {gap_figure(data, expected), along_figure(data, drawn)};
  section.tables = {judged_table(general_checks(numbers)),
                    {.title = "The way", .sheet = std::move(way)}};
  return {.section = std::move(section),
          .datasets = {{data, std::move(gaps)},
                       {expected, std::move(known)},
                       {data + "_along", std::move(along)}},
          .hypotheses = std::move(stated),
          .checks = general_checks(numbers)};
}

constexpr Words kSingleIndex{
    "general-single-index", "Single-index labels: a curved link, and the slow regime",
    "Labels tanh(wx) + noise of variance 0.1, w = 1 or −1, x standard normal; start u = v = 0.3.",
    "On the infinite prompt the head applies a smoothed link to what linear attention computes, so "
    "that training makes the scores sharp: u passes 1. The largest gap then falls with the "
    "exponent of the slow regime. Averages over prompts are exact; NumPy values use none of this "
    "code."};
constexpr Words kClassification{
    "general-classification", "Classification: two Gaussian classes",
    "Classes N(1, 1) and N(−1, 1) of equal weight; start u = v = 0.3.",
    "The limit of the head is v tanh(ux), which is Bayes' rule at u = v = 1. Scores become as "
    "sharp as those of the single-index task, but a query far out reads the label of the largest "
    "token on its side, which is mostly right: at these lengths the gap falls like 1/L."};
constexpr Words kPool{
    "general-pool", "A pool of tasks: prompts are Gaussian, their mixture is not",
    "w = 1 or −1/2 with equal chance, x standard normal, noise of variance 0.1; start u = 0.1, "
    "v = 3.",
    "Given its task a prompt is Gaussian, and the limit of the head is linear. The start is chosen "
    "such that scores stay mild, so that the gap falls like 1/L."};
constexpr Words kBounded{
    "general-bounded", "Bounded features: ±1 and uniform",
    "w = 1 or −1/2 with equal chance, noise of variance 0.1, x = ±1 or uniform with variance 1; "
    "start u = v = 0.3.",
    "The limit of the head is not linear: it reads tanh(u) of ±1 features. Scores are bounded, so "
    "that the gap falls like 1/L however long the training."};

template <Cases* kCases, const Words* kWords>
Statement statement_of() {
  return make_statement<GeneralRow>(kWords->id, kWords->title, cells<kCases, kWords>,
                                    report<kCases, kWords>);
}

}  // namespace

Statement general_single_index() { return statement_of<single_index_cases, &kSingleIndex>(); }
Statement general_classification() {
  return statement_of<classification_cases, &kClassification>();
}
Statement general_pool() { return statement_of<pool_cases, &kPool>(); }
Statement general_bounded() { return statement_of<bounded_cases, &kBounded>(); }

}  // namespace esscher::paper
