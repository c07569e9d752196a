#include <cmath>

#include "esscher/concentration/study.h"

namespace esscher {
namespace {

Json interval(const Interval& ci) { return Json::array({number(ci.lo), number(ci.hi)}); }

Json row_json(const StudyRow& r) {
  Json j = {{"L", r.L},
            {"metric", name(r.metric)},
            {"engine", name(r.engine)},
            {"value", number(r.value)},
            {"std_error", number(r.std_error)},
            {"ci", interval(r.ci)},
            {"asymptotic", number(r.asymptotic)},
            {"ess", number(r.ess)},
            {"bias", number(r.bias2)},
            {"variance", number(r.variance)},
            {"shrink", number(r.shrink())},
            {"frozen", number(r.frozen)},
            {"heavy", r.heavy}};
  if (r.heavy) j["flag"] = r.flag;
  return j;
}

Json fit_json(const MetricFit& f) {
  Json j = {{"metric", name(f.metric)},
            {"slope", number(f.power.slope)},
            {"std_error", number(f.power.std_error)},
            {"ci", interval(f.power.ci)},
            {"constant", number(std::exp(f.power.log_c))}};
  Json local = Json::array(), shapes = Json::array();
  for (const LocalExponent& e : f.local) {
    local.push_back(
        {{"L", number(e.L)}, {"exponent", number(e.exponent)}, {"std_error", number(e.std_error)}});
  }
  for (const ShapeFit& s : f.shapes) {
    shapes.push_back({{"shape", name(s.shape)},
                      {"constant", number(std::exp(s.log_c))},
                      {"g", number(s.g)},
                      {"aic", number(s.aic)},
                      {"weight", number(s.weight)}});
  }
  j["local"] = std::move(local);
  j["shapes"] = std::move(shapes);
  return j;
}

}  // namespace

Json to_json(const StudyResult& result) {
  Json rows = Json::array(), fits = Json::array(), constants = Json::object();
  for (const StudyRow& r : result.rows) rows.push_back(row_json(r));
  for (const MetricFit& f : result.fits) fits.push_back(fit_json(f));
  std::size_t k = 0;
  for (const StudyRow& r : result.rows) {
    const std::string metric(name(r.metric));
    if (!constants.contains(metric)) constants[metric] = number(result.regime.constants.at(k++));
  }
  Json queries = Json::array();
  for (double v : result.query_values) queries.push_back(number(v));
  return {{"how", result.how},
          {"rows", std::move(rows)},
          {"fits", std::move(fits)},
          {"regime",
           {{"lambda", number(result.regime.lambda)},
            {"gamma", number(result.regime.gamma)},
            {"constant", number(result.regime.constants.at(0))},
            {"constants", std::move(constants)},
            {"text", result.regime.text}}},
          {"queries", {{"L", result.query_length}, {"values", std::move(queries)}}}};
}

Json to_json(const std::vector<SigmaPoint>& points) {
  Json rows = Json::array();
  for (const SigmaPoint& p : points) {
    rows.push_back({{"sigma", number(p.sigma)},
                    {"metric", name(p.metric)},
                    {"lambda", number(p.lambda)},
                    {"gamma", number(p.gamma)},
                    {"exponent", number(p.exponent)},
                    {"std_error", number(p.std_error)},
                    {"c2", number(p.c2)}});
  }
  return rows;
}

}  // namespace esscher
