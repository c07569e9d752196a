#include "esscher/json/concentration.h"

#include <string>

#include "esscher/json/rows.h"

namespace esscher {
namespace {

Json weights_json(const std::vector<std::string>& parts, const Vector& weights) {
  Json out = Json::array();
  for (std::size_t k = 0; k < parts.size(); ++k) {
    Json one{{"group", parts[k]}};
    put(one, "mean", weights[static_cast<Index>(k)]);
    out.push_back(std::move(one));
  }
  return out;
}

Json study_rows_json(const StudyResult& result) {
  Json out = rows_json(result.rows);
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    if (!out[i]["heavy"].get<bool>()) out[i].erase("flag");
    if (!result.parts.empty()) {
      out[i]["weights"] = weights_json(result.parts, result.rows[i].weights);
    }
  }
  return out;
}

Json regime_json(const StudyResult& result) {
  const RegimeReport& regime = result.regime;
  Json out = Json::object(), constants = Json::object();
  out["regime"] = name(regime.regime);
  put(out, "lambda", regime.lambda);
  put(out, "gamma", regime.gamma);
  put(out, "constant", regime.constants.at(0));
  std::size_t k = 0;
  for (const StudyRow& r : result.rows) {
    const std::string metric(name(r.metric));
    if (!constants.contains(metric)) put(constants, metric, regime.constants.at(k++));
  }
  out["constants"] = std::move(constants);
  if (regime.kappa) out["kappa"] = *regime.kappa;
  out["text"] = regime.text;
  return out;
}

Json limits_json(const StudyResult& result) {
  Json out = Json::object();
  for (std::size_t k = 0; k < result.limits.size(); ++k) {
    Json& limit = out[std::string(name(result.metrics[k]))];
    put(limit, "mean_square", result.limits[k].mean_square);
    put(limit, "std_error", result.limits[k].std_error);
    const Interval& ci = result.limits[k].ci;
    if (ci.hi > ci.lo) limit["ci"] = {ci.lo, ci.hi};
  }
  return out;
}

}  // namespace

Json to_json(const StudyResult& result) {
  Json queries = Json::array();
  for (double v : result.query_values) queries.push_back(number(v));
  return {{"how", result.how},
          {"rows", study_rows_json(result)},
          {"fits", rows_json(result.fits)},
          {"regime", regime_json(result)},
          {"limits", limits_json(result)},
          {"queries", {{"L", result.query_length}, {"values", std::move(queries)}}}};
}

Json to_json(const Reach& reach) { return row_json(reach); }

Json to_json(const std::vector<SigmaPoint>& points) { return rows_json(points); }

Json to_json(const BoundReport& report) {
  Json out{{"proposition", name(report.proposition)}};
  put(out, "sigma", report.sigma);
  out["hypotheses"] = rows_json(report.hypotheses);
  out["fits"] = rows_json(report.fits);
  out["status"] = name(report.verdict.status);
  out["verdict"] = report.verdict.text;
  return out;
}

Json to_json(const LengthAnswer& answer) {
  const Json bracket =
      answer.bracket_hi == 0 ? Json() : Json::array({answer.bracket_lo, answer.bracket_hi});
  const Json row = row_json(answer);
  Json out = Json::object();
  for (const auto& [key, value] : row.items()) {
    if (key == "clt") out["bracket"] = bracket;
    out[key] = value;
  }
  return out;
}

}  // namespace esscher
