#include "esscher/paper/claims.h"

#include <algorithm>
#include <cmath>

namespace esscher::paper {
namespace {

Json figure_json(const Judged& judged, bool control) {
  Json out{{"what", judged.what},
           {"value", number(judged.value)},
           {"error", number(judged.error)},
           {"expected", number(judged.expected)},
           {"expected_error", number(judged.expected_error)},
           {"source", name(judged.source)},
           {"tolerance", judged.tolerance},
           {"agrees", judged.agrees()}};
  if (!control) out["factor_noticed"] = number(judged.noticed());
  return out;
}

Json figures_json(const std::vector<Judged>& figures, bool control) {
  Json out = Json::array();
  for (const Judged& judged : figures) out.push_back(figure_json(judged, control));
  return out;
}

Json hypothesis_json(const StatedHypothesis& hypothesis) {
  Json out{{"text", hypothesis.text}, {"values", Json::object()}};
  out["holds"] = hypothesis.holds ? Json(*hypothesis.holds) : Json(nullptr);
  for (const auto& [what, value] : hypothesis.values) out["values"][what] = number(value);
  return out;
}

}  // namespace

Json claim_json(const SectionReport& made) {
  const Section& section = made.section;
  double tolerance = 0;
  for (const Judged& judged : made.checks.figures)
    tolerance = std::max(tolerance, judged.tolerance);
  Json hypotheses = Json::array(), conditions = Json::array();
  for (const StatedHypothesis& h : made.hypotheses) hypotheses.push_back(hypothesis_json(h));
  for (const Condition& c : made.checks.conditions) {
    conditions.push_back({{"broken_if", c.what}, {"holds", c.holds}});
  }
  return {{"id", section.id},
          {"title", section.title},
          {"text", section.statement},
          {"hypotheses", std::move(hypotheses)},
          {"tolerance", {{"relative", tolerance}, {"standard_errors", kJudgedErrors}}},
          {"verdict", {{"status", name(section.verdict->status)}, {"text", section.verdict->text}}},
          {"numbers", figures_json(made.checks.figures, false)},
          {"conditions", std::move(conditions)},
          {"negative_controls", figures_json(made.checks.controls, true)},
          {"command", section.rerun}};
}

}  // namespace esscher::paper
