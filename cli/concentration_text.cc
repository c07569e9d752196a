#include "cli/concentration_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/style.h"
#include "cli/text_table.h"
#include "esscher/base/number_text.h"

namespace esscher::cli {
namespace {

std::string line(const std::string& title, const std::string& text) {
  return strong(fmt::format("{:<10}", title)) + text + "\n";
}

std::string constants_text(const StudyResult& r) {
  std::string out;
  for (std::size_t k = 0; k < r.metrics.size(); ++k) {
    const double c = r.regime.constants.at(k);
    out += fmt::format("{}{} {}", k == 0 ? "" : ", ", name(r.metrics[k]),
                       std::isfinite(c) ? brief(c) : "none");
  }
  return out + "  (what L D(L) tends to)";
}

// The limit is a theorem below lambda = 1/2 and a prediction above.
std::string limit_text(const StudyResult& r, const MetricFit& fit) {
  if (std::isnan(fit.limit)) return "its limit is not known";
  const bool predicted = r.regime.regime == Regime::slow;
  return (predicted ? "its predicted limit is " : "its limit is ") + brief(fit.limit);
}

// The expected weight of every part of the prompt at the longest length.
std::string weights_text(const StudyResult& r) {
  std::string out;
  for (std::size_t k = 0; k < r.parts.size(); ++k) {
    out += fmt::format("{}{} {}", k == 0 ? "" : ", ", r.parts[k],
                       brief(r.rows.back().weights[static_cast<Index>(k)]));
  }
  return out + fmt::format("  (expected, at L = {})", r.rows.back().L);
}

std::string exponent_text(const StudyResult& r, const MetricFit& fit) {
  const LocalExponent &first = fit.local.front(), &last = fit.local.back();
  const std::string ends = fmt::format("{} at L = {}, {} at L = {}", brief(first.exponent),
                                       brief(first.L, 3), brief(last.exponent), brief(last.L, 3));
  const std::string at = fmt::format("{}: {}; {}", name(fit.metric), ends, limit_text(r, fit));
  if (fit.noise == CurveNoise::none) return at;
  std::string out = at + fmt::format("; over all lengths {:.4f}, 95 % [{:.4f}, {:.4f}]",
                                     -fit.power.slope, -fit.power.ci.hi, -fit.power.ci.lo);
  for (const ShapeFit& s : fit.shapes) {
    if (s.weight > 0.5) {
      out += fmt::format("; best shape on these lengths {} with g = {:.3f} (Akaike weight {:.2f})",
                         name(s.shape), s.g, s.weight);
    }
  }
  return out;
}

std::string reach_text(const Reach& reach) {
  if (!reach.length) return "no length of this study, and no constant to extrapolate with";
  switch (reach.status) {
    case ReachStatus::certified:
      return fmt::format("L = {}, certified: one token less is not enough", *reach.length);
    case ReachStatus::shorter:
      return fmt::format("L = {}, the shortest of this study, is enough", *reach.length);
    case ReachStatus::extrapolated:
      return fmt::format("about L = {} by constant/L, beyond the lengths of this study",
                         brief(static_cast<double>(*reach.length), 2));
    case ReachStatus::interpolated: break;
    case ReachStatus::beyond: return "";
  }
  const auto end = [](const std::optional<std::int64_t>& L) {
    return L ? std::to_string(*L) : std::string("?");
  };
  const std::string between = reach.low == reach.length && reach.high == reach.length
                                  ? ""
                                  : fmt::format(", 95 % [{}, {}]", end(reach.low), end(reach.high));
  return fmt::format("about L = {}{}, read off the curve; `esscher length --error 1%` brackets it",
                     *reach.length, between);
}

TextTable metric_table() {
  return TextTable({{"L", "length of the prompt", {}},
                    {"D(L)", "mean-square error over queries and prompts", {}},
                    {"95 % interval", "of D(L)", {}},
                    {"rms %", "root of D(L), in per cent of the size of the limit", {}},
                    {"constant/L", "what the central limit theorem says of D(L)", {}},
                    {"bias %", "part of D(L) that more prompts do not average away", {}}});
}

TextTable weight_table() {
  return TextTable(
      {{"L", "length of the prompt", {}},
       {"ESS", "tokens that a query effectively averages over", {}},
       {"shrink", "factor by which a finite prompt shrinks the mean output", {}},
       {"frozen", "fraction of the queries with L < e^(tau^2), which see few tokens", {}}});
}

std::string interval_text(const StudyRow& row) {
  return row.std_error == 0 ? "" : fmt::format("[{:.4g}, {:.4g}]", row.ci.lo, row.ci.hi);
}

}  // namespace

std::string summary_text(const StudyResult& r, const Reach& one_percent) {
  std::string regime = r.regime.text;
  if (std::isfinite(r.regime.lambda)) {
    regime += fmt::format(" (lambda = {:.4g}, gamma = {:.4g})", r.regime.lambda, r.regime.gamma);
  }
  std::string out = line("engine", r.how) + line("regime", regime);
  out += line("constant", constants_text(r));
  for (const MetricFit& fit : r.fits) out += line("exponent", exponent_text(r, fit));
  if (!r.parts.empty()) out += line("weights", weights_text(r));
  out += line("for 1 %", reach_text(one_percent) + fmt::format(" ({}, root mean square relative to "
                                                               "its limit)",
                                                               name(one_percent.metric)));
  return out;
}

std::string curves_text(const StudyResult& r) {
  std::vector<TextTable> tables;
  TextTable weights = weight_table();
  std::string out, flag;
  for (std::size_t k = 0; k < r.metrics.size(); ++k) {
    TextTable& table = tables.emplace_back(metric_table());
    std::vector<std::string> marks;
    for (const StudyRow& row : r.rows) {
      if (row.metric != r.metrics[k]) continue;
      table.add({std::to_string(row.L), brief(row.value, 5), interval_text(row),
                 brief_or_dash(100 * r.limits[k].relative_rms(row.value)),
                 brief_or_dash(row.asymptotic), brief_or_dash(100 * row.bias2 / row.value)});
      if (k == 0) {
        weights.add({std::to_string(row.L), brief_or_dash(row.ess), brief_or_dash(row.shrink()),
                     brief_or_dash(row.frozen)});
      }
      marks.emplace_back(row.heavy ? "  !" : "");
      if (flag.empty()) flag = row.flag;
    }
    out += strong(name(r.metrics[k])) + "\n" + table.text(marks) + "\n";
  }
  if (!flag.empty()) {
    out += "! this interval cannot be trusted: " + flag +
           "; use engine = \"exact\", or more queries or prompts\n\n";
  }
  out += strong("weights of the softmax") + "\n" + weights.text() + "\n";
  tables.push_back(std::move(weights));
  return out + explained(tables);
}

std::string sigma_text(const std::vector<SigmaPoint>& points) {
  if (points.empty()) return "";
  TextTable table({{"scale", "factor of the tokens", {}},
                   {"sigma", "their sub-Gaussian constant", {}},
                   {"metric", "", {}},
                   {"lambda", "largest eigenvalue of the law of tau^2", {}},
                   {"predicted", "exponent", {}},
                   {"exponent", "measured on the last two decades of lengths", {}},
                   {"+-", "its standard error, where something was sampled", {}},
                   {"c_2", "exponent times sigma^2", {}}});
  for (const SigmaPoint& p : points) {
    table.add({brief(p.scale), brief(p.sigma), std::string(name(p.metric)), brief_or_dash(p.lambda),
               brief_or_dash(p.gamma), fmt::format("{:.4f}", p.exponent),
               p.std_error > 0 ? brief(p.std_error, 2) : "", brief_or_dash(p.c2)});
  }
  return "\nexponent against sigma\n" + table.text() + "\n" + explained({table});
}

}  // namespace esscher::cli
