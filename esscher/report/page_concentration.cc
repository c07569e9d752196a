#include "esscher/report/page_concentration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "esscher/base/number_text.h"
#include "esscher/report/reading.h"

namespace esscher {
namespace {

const Axis kLengthAxis = {.column = "L", .title = "prompt length L", .log = true};

// Curves with bands over the length, one per metric.
CurveChart length_chart(const std::string& data, Axis y) {
  return {.data = data,
          .x = kLengthAxis,
          .y = std::move(y),
          .series = "metric",
          .low = "low",
          .high = "high"};
}

// --- numbers

// What a legend calls a metric.
const char* words_of(Metric metric) {
  switch (metric) {
    case Metric::output: return "output";
    case Metric::grad_v: return "gradient in V";
    case Metric::grad_u: return "gradient in U";
    case Metric::grad_k: return "gradient in K";
    case Metric::grad_q: break;
  }
  return "gradient in Q";
}

Sheet curve_sheet(const std::vector<StudyRow>& rows) {
  Sheet sheet{.columns = {"L", "metric", "value", "low", "high"}, .rows = {}};
  for (const StudyRow& r : rows) sheet.add(r.L, words_of(r.metric), r.value, r.ci.lo, r.ci.hi);
  return sheet;
}

// One value per row where it is finite.
template <class ValueOf>
Sheet line_sheet(const std::vector<StudyRow>& rows, const ValueOf& value_of) {
  Sheet sheet{.columns = {"L", "metric", "value"}, .rows = {}};
  for (const StudyRow& r : rows) {
    const double value = value_of(r);
    if (std::isfinite(value)) sheet.add(r.L, words_of(r.metric), value);
  }
  return sheet;
}

// The rows that a fitted bound speaks about: another curve may cross it freely.
std::vector<StudyRow> bounded_rows(const BoundReport& bound, const StudyResult& r) {
  std::vector<StudyRow> rows;
  for (const BoundFit& f : bound.fits) {
    std::copy_if(r.rows.begin(), r.rows.end(), std::back_inserter(rows),
                 [&](const StudyRow& row) { return row.metric == f.metric && row.L >= 2; });
  }
  return rows;
}

Sheet bound_sheet(const BoundReport& bound, const std::vector<StudyRow>& rows) {
  return line_sheet(rows, [&](const StudyRow& row) {
    const auto fit = std::find_if(bound.fits.begin(), bound.fits.end(),
                                  [&](const BoundFit& f) { return f.metric == row.metric; });
    return bound_at(*fit, bound.sigma, row.L);
  });
}

constexpr double kFrozenShown = 0.01;  // a smaller share of frozen queries needs no figure

constexpr double kTwoSided95 = 1.96;

Sheet local_sheet(const std::vector<MetricFit>& fits) {
  Sheet sheet{.columns = {"L", "metric", "exponent", "low", "high"}, .rows = {}};
  for (const MetricFit& f : fits) {
    for (const LocalExponent& e : f.local) {
      sheet.add(e.L, words_of(f.metric), e.exponent, e.exponent - kTwoSided95 * e.std_error,
                e.exponent + kTwoSided95 * e.std_error);
    }
  }
  return sheet;
}

// The exponents at both ends beside their limit; a slope with its interval where points were sampled.
Sheet exponent_sheet(const std::vector<MetricFit>& fits) {
  const MetricFit& any = fits.front();
  Sheet sheet{.columns = {"metric", "exponent at L = " + brief(any.local.front().L, 3),
                          "exponent at L = " + brief(any.local.back().L, 3), "limit"},
              .rows = {}};
  const bool is_sampled = any.noise == CurveNoise::sampled;
  if (is_sampled) sheet.columns.insert(sheet.columns.end(), {"all lengths", "95 % interval"});
  for (const MetricFit& f : fits) {
    Record row{cell(words_of(f.metric)), brief(f.local.front().exponent),
               brief(f.local.back().exponent), brief_or_dash(f.limit)};
    if (is_sampled) {
      row.emplace_back(fmt::format("{:.4f}", -f.power.slope));
      row.emplace_back(fmt::format("[{:.4f}, {:.4f}]", -f.power.ci.hi, -f.power.ci.lo));
    }
    sheet.add_row(std::move(row));
  }
  return sheet;
}

Sheet shape_sheet(const std::vector<MetricFit>& fits) {
  Sheet sheet{.columns = {"metric", "shape", "c", "g", "weight"}, .rows = {}};
  for (const MetricFit& f : fits) {
    for (const ShapeFit& s : f.shapes) {
      sheet.add(words_of(f.metric), s.shape, brief(std::exp(s.log_c)), fmt::format("{:.4f}", s.g),
                fmt::format("{:.3f}", s.weight));
    }
  }
  return sheet;
}

// --- prose and charts

// Words for a terminal as words for a page: Greek letters, and names of people with a capital.
std::string in_print(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"lambda", "λ"},          {"Lambda", "Λ"},           {"gamma", "γ"},
      {"sigma", "σ"},           {"|T[mu]|_L4", "‖T[μ]‖₄"}, {"|mean|", "norm of the mean"},
      {" ~ ", " ≈ "},           {" >= ", " ≥ "},           {" <= ", " ≤ "},
      {"gaussian", "Gaussian"}, {"laplace", "Laplace"},    {"student", "Student"}};
  for (const auto& [from, to] : kWords) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

std::string capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string sentence(std::string text) { return capital(in_print(std::move(text))) + "."; }

std::string regime_sentence(const RegimeReport& regime) {
  if (!std::isfinite(regime.lambda)) return regime.text;
  return regime.text + fmt::format(" (λ = {:.4g}, γ = {:.4g})", regime.lambda, regime.gamma);
}

// One line for each, and one for all tilted moments.
std::vector<std::string> hypotheses_in_words(const BoundReport& bound) {
  std::vector<std::string> out;
  double low = HUGE_VAL, high = -HUGE_VAL;
  bool finite = true;
  for (const Hypothesis& h : bound.hypotheses) {
    if (h.name.starts_with("moment ")) {
      low = std::fmin(low, h.value);
      high = std::fmax(high, h.value);
      finite = finite && h.holds;
    } else {
      out.push_back(hypothesis_words(h.name) + (h.holds ? "" : ", which does not hold here") +
                    " (" + in_print(h.text) + ").");
    }
  }
  if (low <= high || !finite) {
    const std::string range = " (between " + brief(low, 3) + " and " + brief(high, 3) + ").";
    out.push_back(
        "The tilted moments ∬|z′|^{p} |z|^{q} dμ_{a}(z′) dν(z) for p, q in {0, 4, 8} are " +
        (finite ? "finite" + range : std::string("not all finite here.")));
  }
  return out;
}

void add_bound(const BoundReport& bound, const StudyResult& r, CurveChart chart, Section& section,
               Page& page) {
  section.statement = "Proposition " + std::string(name(bound.proposition));
  section.hypotheses = hypotheses_in_words(bound);
  section.verdict = page_verdict(bound.verdict);
  if (bound.fits.empty()) return;
  const std::vector<StudyRow> rows = bounded_rows(bound, r);
  page.datasets["bounded"] = curve_sheet(rows);
  page.datasets["bound"] = bound_sheet(bound, rows);
  chart.data = "bounded";
  chart.reference_data = "bound";
  chart.reference_title = "bound with fitted constants";
  section.figures.push_back({.id = "bound",
                             .chart = chart,
                             .caption = "Where a curve crosses the bound, whose constants c₁ and "
                                        "c₂ were fitted, the fitted shape is wrong.",
                             .read = true});
}

// Another study of the same lengths, dashed behind this one.
void add_twin(const std::string& id, const StudyResult& twin, const std::string& caption,
              const std::string& title, CurveChart chart, Section& section, Page& page) {
  page.datasets[id] = line_sheet(twin.rows, [](const StudyRow& row) { return row.value; });
  chart.reference_data = id;
  chart.reference_title = title;
  section.figures.push_back({.id = id, .chart = chart, .caption = caption, .read = true});
}

void add_curve(const StudyResult& r, const std::optional<BoundReport>& bound,
               const std::optional<StudyResult>& exact, const std::optional<StudyResult>& fit,
               Page& page) {
  const auto any = [&](auto test) { return std::any_of(r.rows.begin(), r.rows.end(), test); };
  const bool heavy = any([](const StudyRow& row) { return row.heavy; });
  const bool sampled = any([](const StudyRow& row) { return row.std_error > 0; });
  page.datasets["curve"] = curve_sheet(r.rows);
  page.datasets["asymptote"] =
      line_sheet(r.rows, [](const StudyRow& row) { return row.asymptotic; });
  const bool asymptote = !page.datasets["asymptote"].rows.empty();
  CurveChart chart =
      length_chart("curve", {.column = "value", .title = "mean squared error D(L)", .log = true});
  if (asymptote) {
    chart.reference_data = "asymptote";
    chart.reference_title = "constant/L";
  }
  std::string caption = sampled ? "The mean squared error with its 95 % band. "
                                : "The mean squared error, computed without sampling. ";
  caption += asymptote ? "Dashed: constant/L. " : "The constant of 1/L is infinite here. ";
  caption += curve_advice(heavy);
  Section section{.id = "curve",
                  .title = "Distance from the limit",
                  .text = sentence(r.how) + " " + sentence(regime_sentence(r.regime))};
  section.figures.push_back({.id = "curve", .chart = chart, .caption = caption, .read = true});
  if (exact) {
    add_twin("exact", *exact,
             "Dashed: the exact engine, without sampling. Where it leaves the band, believe it and "
             "not the band.",
             "exact engine", chart, section, page);
  }
  if (fit) {
    add_twin("gaussian-fit", *fit,
             "Dashed: the Gaussian with the mean and covariance of the tokens. Where the two part, "
             "lengths computed for a Gaussian do not serve these tokens.",
             "Gaussian fit", chart, section, page);
  }
  if (bound) add_bound(*bound, r, chart, section, page);
  page.sections.push_back(std::move(section));
}

void add_exponents(const StudyResult& r, Page& page) {
  Sheet local = local_sheet(r.fits);
  if (local.rows.empty()) return;
  page.datasets["local"] = std::move(local);
  CurveChart chart = length_chart(
      "local", {.column = "exponent", .title = "exponent between neighbouring lengths"});
  chart.references.push_back({.axis = 'y', .value = 1.0, .label = "1/L"});
  if (r.regime.gamma < 1) {
    chart.references.push_back({.axis = 'y', .value = r.regime.gamma, .label = "predicted"});
  }
  Section section{.id = "exponents",
                  .title = "How fast",
                  .text = "The exponent γ of D(L) ≈ c/L^{γ} between neighbouring lengths."};
  section.figures.push_back({.id = "local",
                             .chart = chart,
                             .caption = "At 1 doubling the prompt halves the error; below 1 longer "
                                        "prompts buy less than that.",
                             .read = true});
  section.tables.push_back({.title = "The exponent at both ends, and what it tends to",
                            .sheet = exponent_sheet(r.fits)});
  Sheet shapes = shape_sheet(r.fits);
  if (!shapes.rows.empty()) {
    section.tables.push_back({.title = "Three shapes compared on these lengths, by Akaike weights",
                              .sheet = std::move(shapes)});
  }
  page.sections.push_back(std::move(section));
}

void add_sigma(const std::vector<SigmaPoint>& sigmas, Page& page) {
  if (sigmas.empty()) return;
  Sheet measured{.columns = {"sigma2", "metric", "exponent", "low", "high"}, .rows = {}};
  Sheet predicted{.columns = {"sigma2", "metric", "exponent"}, .rows = {}};
  for (const SigmaPoint& p : sigmas) {
    const double s2 = p.sigma * p.sigma, half = kTwoSided95 * p.std_error;
    measured.add(s2, words_of(p.metric), p.exponent, p.exponent - half, p.exponent + half);
    predicted.add(s2, words_of(p.metric), p.gamma);
  }
  page.datasets["sigma"] = std::move(measured);
  page.datasets["sigma_predicted"] = std::move(predicted);
  CurveChart chart = length_chart("sigma", {.column = "exponent", .title = "measured exponent"});
  chart.x = {.column = "sigma2", .title = "σ²"};
  chart.reference_data = "sigma_predicted";
  chart.reference_title = "predicted exponent";
  Section section{.id = "sigma",
                  .title = "The exponent against σ²",
                  .text =
                      "Tokens are scaled; σ is their sub-Gaussian constant, and the exponent is "
                      "that of the last two decades of lengths. The constant c₂ of the bound "
                      "is the exponent times σ²."};
  section.figures.push_back({.id = "sigma", .chart = chart, .caption = sigma_advice(sigmas)});
  page.sections.push_back(std::move(section));
}

// A curve over the length without bands; nothing for an empty sheet.
void add_length_figure(const std::string& id, Sheet sheet, Axis y, const std::string& series,
                       const std::string& caption, Section& section, Page& page) {
  if (sheet.rows.empty()) return;
  page.datasets[id] = std::move(sheet);
  section.figures.push_back(
      {.id = id,
       .chart = CurveChart{.data = id, .x = kLengthAxis, .y = std::move(y), .series = series},
       .caption = caption,
       .read = true});
}

void add_split(const StudyResult& r, Page& page) {
  const Metric metric = r.rows.front().metric;
  Sheet split{.columns = {"L", "part", "value"}, .rows = {}};
  Sheet frozen{.columns = {"L", "fraction"}, .rows = {}};
  Sheet table{
      .columns = {"L", "D(L)", "tokens seen", "bias, % of D(L)", "shrinks by", "frozen queries"},
      .rows = {}};
  for (const StudyRow& row : r.rows) {
    if (row.metric != metric) break;
    table.add(row.L, brief_or_dash(row.value), brief_or_dash(row.ess),
              brief_or_dash(100 * row.bias2 / row.value), brief_or_dash(row.shrink()),
              brief_or_dash(row.frozen));
    if (std::isfinite(row.bias2)) {
      split.add(row.L, "bias", row.bias2);
      split.add(row.L, "variance", row.variance);
    }
    if (std::isfinite(row.frozen)) frozen.add(row.L, row.frozen);
  }
  double most_frozen = 0;
  for (const StudyRow& row : r.rows) {
    if (row.metric == metric && std::isfinite(row.frozen)) {
      most_frozen = std::max(most_frozen, row.frozen);
    }
  }
  Section section{.id = "why",
                  .title = "Why",
                  .text = "The error of the " + std::string(words_of(metric)) +
                          " is bias plus variance. A query is frozen if its scores are so sharp "
                          "that L is below e^{τ²}: it sees one token instead of the prompt. " +
                          (most_frozen > kFrozenShown ? std::string("Their share is drawn below.")
                                                      : "Here at most a share of " +
                                                            brief(most_frozen, 2) + " is frozen.")};
  add_length_figure("split", std::move(split),
                    {.column = "value", .title = "part of D(L)", .log = true}, "part",
                    "Bias: a finite prompt shrinks the operator. Averaging several prompts removes "
                    "the variance and never the bias.",
                    section, page);
  if (most_frozen > kFrozenShown) {
    add_length_figure("frozen", std::move(frozen),
                      {.column = "fraction", .title = "share of frozen queries", .log = true}, "",
                      "The share of frozen queries is " + brief(most_frozen, 2) +
                          " at its largest: shrink the scores before lengthening the prompt.",
                      section, page);
  }
  section.tables.push_back(
      {.title =
           fmt::format("What the {} sees of a prompt: its effective number of tokens, the bias "
                       "in % of D(L), the factor by which the operator shrinks, and the share "
                       "of frozen queries",
                       words_of(metric)),
       .sheet = std::move(table)});
  page.sections.push_back(std::move(section));
}

void add_queries(const StudyResult& r, Page& page) {
  const QueryShare share = query_share(r.query_values);
  if (share.errors.size() < 2) return;
  Sheet sheet{.columns = {"error"}, .rows = {}};
  for (double v : share.errors) sheet.add(v);
  page.datasets["queries"] = std::move(sheet);
  Section section{.id = "queries",
                  .title = "Over queries",
                  .text = fmt::format("Errors of single queries at L = {}.", r.query_length)};
  section.figures.push_back(
      {.id = "queries",
       .chart = HistogramChart{.data = "queries",
                               .x = {.column = "error", .title = "error of one query", .log = true},
                               .count_title = "queries"},
       .caption = fmt::format("The worst 5 % of these {} queries carry {:.0f} % of the average; {}",
                              share.errors.size(), 100 * share.worst, query_advice(share.worst))});
  page.sections.push_back(std::move(section));
}

// What the study found, in a sentence: the error at the longest prompt and how it falls.
std::string headline(const StudyResult& r) {
  const Metric metric = r.rows.front().metric;
  const StudyRow* last = &r.rows.front();
  for (const StudyRow& row : r.rows) {
    if (row.metric == metric) last = &row;
  }
  const std::string value =
      last->std_error > 0 ? brief_with_error(last->value, last->std_error) : brief(last->value, 3);
  std::string out = fmt::format("With prompts of {} tokens the mean squared error of the {} is {}",
                                brief(last->L), words_of(metric), value);
  for (const MetricFit& f : r.fits) {
    if (f.metric != metric || f.local.empty()) continue;
    out += fmt::format("; there it falls like 1/L^{{{:.2f}}}", f.local.back().exponent);
  }
  return out + ".";
}

}  // namespace

std::string sigma_advice(const std::vector<SigmaPoint>& sigmas) {
  double fast = 0, slow = std::numeric_limits<double>::infinity();
  for (const SigmaPoint& p : sigmas) {
    const double s2 = p.sigma * p.sigma;
    if (p.gamma >= 1) {
      fast = std::max(fast, s2);
    } else {
      slow = std::min(slow, s2);
    }
  }
  const std::string words = "The measured exponent against σ². ";
  if (fast == 0) return words + "Errors fall more slowly than 1/L at every σ² that was tried.";
  if (std::isinf(slow)) {
    return words + "Errors fall like 1/L in the limit at every σ² that was tried.";
  }
  return words + "In the limit errors fall like 1/L up to σ² = " + brief(fast, 3) +
         ", and more slowly from σ² = " + brief(slow, 3) + " on.";
}

Verdict page_verdict(const BoundVerdict& verdict) {
  switch (verdict.status) {
    case BoundStatus::holds: return {VerdictStatus::holds_fitted, sentence(verdict.text)};
    case BoundStatus::fails: return {VerdictStatus::fails, sentence(verdict.text)};
    case BoundStatus::no_fit: break;
  }
  return {VerdictStatus::info, sentence(verdict.text)};
}

QueryShare query_share(const Vector& values) {
  QueryShare share;
  for (double v : values) {
    if (v > 0 && std::isfinite(v)) share.errors.push_back(v);
  }
  if (share.errors.empty()) return share;
  std::sort(share.errors.begin(), share.errors.end(), std::greater<>());
  const auto worst =
      static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, share.errors.size() / 20));
  share.worst = std::accumulate(share.errors.begin(), share.errors.begin() + worst, 0.0) /
                std::accumulate(share.errors.begin(), share.errors.end(), 0.0);
  return share;
}

std::string_view curve_advice(bool heavy) {
  return heavy ? "The band cannot be trusted where rare queries or prompts carry the average: use "
                 "the exact "
                 "engine or more queries."
               : "Read off the length at which your tolerance is met; `esscher length --eps` gives "
                 "it.";
}

std::string_view query_advice(double worst_share) {
  return worst_share > 0.3 ? "the average is about few queries, so ask `esscher length --quantile "
                             "0.95` for the length that serves most."
                           : "the average speaks for most queries, so `esscher length --eps` "
                             "serves them too.";
}

Page concentration_page(const StudyResult& result, const std::vector<SigmaPoint>& sigmas,
                        const std::optional<BoundReport>& bound,
                        const std::optional<StudyResult>& exact,
                        const std::optional<StudyResult>& fit) {
  Page page{.title = "How far a prompt is from its limit", .lead = headline(result)};
  add_curve(result, bound, exact, fit, page);
  add_exponents(result, page);
  add_sigma(sigmas, page);
  add_split(result, page);
  add_queries(result, page);
  add_readings(page);
  return page;
}

}  // namespace esscher
