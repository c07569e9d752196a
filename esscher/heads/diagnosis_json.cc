#include "esscher/heads/diagnose.h"

namespace esscher {
namespace {

Json error_json(const SurrogateError& error) {
  return {{"lin", number(error.lin)}, {"lin_c", number(error.lin_c)}};
}

// Numbers to keep and multiply-adds per query of a surrogate with k components, next to softmax.
Json cost_json(const HeadDiagnosis& head) {
  const Index dk = head.dk;
  const Index dv = head.dv;
  Json out = Json::array();
  out.push_back({{"surrogate", "softmax"},
                 {"state", head.n * (dk + dv)},
                 {"multiply_adds", head.n * (dk + dv)}});
  out.push_back({{"surrogate", "mean"}, {"state", dv}, {"multiply_adds", 0}});
  out.push_back({{"surrogate", "uncentred"}, {"state", dv * dk}, {"multiply_adds", dv * dk}});
  out.push_back({{"surrogate", "gaussian"}, {"state", dv * (dk + 1)}, {"multiply_adds", dv * dk}});
  for (const MixtureRow& row : head.mixtures) {
    // Per component: weight, mean of k, covariance of k (triangle), mean of v, cross-covariance.
    out.push_back({{"surrogate", "mixture " + std::to_string(row.k)},
                   {"state", row.k * (1 + dk + dk * (dk + 1) / 2 + dv * (dk + 1))},
                   {"multiply_adds", row.k * (dk + dk * (dk + 1) / 2 + dv * (dk + 1))}});
  }
  return out;
}

}  // namespace

Json to_json(const HeadDiagnosis& head) {
  Json mixtures = Json::array();
  for (const MixtureRow& row : head.mixtures) {
    mixtures.push_back({{"k", row.k},
                        {"in_sample", error_json(row.in_sample)},
                        {"split", row.split ? error_json(*row.split) : Json(nullptr)},
                        {"control_lin_c", row.control ? number(row.control->lin_c) : Json(nullptr)},
                        {"control_queries", row.control ? row.control->queries : 0},
                        {"em_steps", row.steps},
                        {"converged", row.converged}});
  }
  Json prefixes = Json::array();
  for (const PrefixRow& row : head.prefixes) {
    prefixes.push_back({{"n", row.n},
                        {"lin_c", number(row.lin_c)},
                        {"control", number(row.control)},
                        {"control_low", number(row.control_low)},
                        {"control_high", number(row.control_high)}});
  }
  const bool never = head.linear_from == kNeverLinear;
  return {{"head", head.name},
          {"n", head.n},
          {"d", head.dk},
          {"d_v", head.dv},
          {"causal", head.causal},
          {"scale", number(head.scale)},
          {"queries", head.queries},
          {"tau2", number(head.tau2)},
          {"tau2_range", {number(head.tau2_low), number(head.tau2_high)}},
          {"ess", number(head.ess)},
          {"frozen", number(head.frozen)},
          {"kurtosis", number(head.kurtosis)},
          {"top_weight", number(head.top_weight)},
          {"dominant", number(head.dominant)},
          {"lin", number(head.gaussian.lin)},
          {"lin_c", number(head.gaussian.lin_c)},
          {"control_lin_c", number(head.control_lin_c)},
          {"mean_only", error_json(head.mean_only)},
          {"uncentred", error_json(head.uncentred)},
          {"gaussian", error_json(head.gaussian)},
          {"gaussian_split", error_json(head.gaussian_split)},
          {"mixtures", mixtures},
          {"best_k", head.best_k > 0 ? Json(head.best_k) : Json(nullptr)},
          {"linear_from", never ? Json(nullptr) : Json(head.linear_from)},
          {"linear_from_text", never ? "not before 10^15" : std::to_string(head.linear_from)},
          {"cost", cost_json(head)},
          {"prefixes", prefixes},
          {"score_histogram", json_vector(head.score_histogram)},
          {"score_mixture",
           head.best_k > 0 ? Json{{"k", head.best_k}, {"density", json_vector(head.score_mixture)}}
                           : Json(nullptr)},
          {"verdict", head.verdict},
          {"reason", head.reason},
          {"engine", "exact"}};
}

}  // namespace esscher
