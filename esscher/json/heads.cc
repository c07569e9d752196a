#include "esscher/json/heads.h"

#include "esscher/json/rows.h"

namespace esscher {
namespace {

Json error_json(double lin, double lin_c) {
  Json out;
  put(out, "lin", lin);
  put(out, "lin_c", lin_c);
  return out;
}

Json error_json(const SurrogateError& error) { return error_json(error.lin, error.lin_c); }

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json control_test_json(const HeadDiagnosis& head) {
  if (!head.control_test_error) return nullptr;
  return {{"error", or_null(head.control_test_error)},
          {"typical", or_null(head.control_test_typical)},
          {"limit", or_null(head.control_test_limit)},
          {"p", or_null(head.control_test_p)},
          {"level", kExcessLevel}};
}

Json shape_json(const HeadDiagnosis& head) {
  if (!head.shape_departure) return nullptr;
  return {{"departure", or_null(head.shape_departure)},
          {"typical", or_null(head.shape_typical)},
          {"limit", or_null(head.shape_limit)},
          {"harm", or_null(head.shape_harm)},
          {"power", or_null(head.shape_power)}};
}

// high is null where the keys are too few to show how their correlation fades.
Json kappa_json(const HeadDiagnosis& head) {
  if (!head.kappa) return nullptr;
  return {{"value", *head.kappa},
          {"low", or_null(head.kappa_low)},
          {"high", number(head.kappa_high.value_or(0))}};
}

Json longer_prompts_json(const HeadDiagnosis& head) {
  if (!head.score_c) return nullptr;
  Json out;
  put(out, "c", *head.score_c);
  put(out, "gap_scale", *head.gap_scale);
  out["phase"] = name(*head.phase);
  out["prefixes"] = rows_json(*head.score_lengths);
  out["forecast"] = rows_json(*head.longer_prompts);
  const Json test = rows_json(*head.forecast_test);
  out["test"] = test.empty() ? Json(nullptr) : test.front();
  return out;
}

Json mixture_json(const MixtureRow& row) {
  return {{"k", row.k},
          {"in_sample", error_json(row.in_sample)},
          {"split", row.split_lin_c ? error_json(*row.split_lin, *row.split_lin_c) : Json(nullptr)},
          {"control_lin_c", or_null(row.control_lin_c)},
          {"control_queries", row.control_queries},
          {"em_steps", row.em_steps},
          {"converged", row.converged}};
}

}  // namespace

Json diagnosis_json(const HeadDiagnosis& head) {
  Json out{{"head", head.name},      {"n", head.n},           {"d", head.dk},
           {"d_v", head.dv},         {"causal", head.causal}, {"scale", head.scale},
           {"queries", head.queries}};
  put(out, "tau2", head.tau2);
  out["tau2_range"] = {number(head.tau2_low), number(head.tau2_high)};
  put(out, "ess", head.ess);
  put(out, "frozen", head.frozen);
  put(out, "kurtosis", head.kurtosis);
  put(out, "top_weight", head.top_weight);
  put(out, "dominant", head.dominant);
  out["kappa"] = kappa_json(head);
  put(out, "lin", head.gaussian.lin);
  put(out, "lin_c", head.gaussian.lin_c);
  put(out, "control_lin_c", head.control_lin_c);
  out["control_test"] = control_test_json(head);
  out["mean_only"] = error_json(head.mean_only);
  out["uncentred"] = error_json(head.uncentred);
  out["gaussian"] = error_json(head.gaussian);
  out["gaussian_split"] = error_json(head.gaussian_split);
  out["mixtures"] = Json::array();
  for (const MixtureRow& row : head.mixtures) out["mixtures"].push_back(mixture_json(row));
  out["best_k"] = or_null(head.best_k);
  out["mixture_keys"] = or_null(head.mixture_keys);
  out["linear_from"] =
      head.linear_from.is_infinite() ? Json(nullptr) : Json(head.linear_from.count());
  out["linear_from_text"] = linear_from_text(head.linear_from);
  out["shape"] = shape_json(head);
  out["cost"] = rows_json(head.cost);
  out["prefixes"] = rows_json(head.prefixes);
  out["longer_prompts"] = longer_prompts_json(head);
  out["window"] = head.window ? rows_json(*head.window) : Json(nullptr);
  out["window_lengths"] = head.window_lengths ? rows_json(*head.window_lengths) : Json(nullptr);
  out["window_verdict"] = or_null(head.window_verdict);
  out["budget"] = head.budget ? rows_json(*head.budget) : Json(nullptr);
  out["budget_verdict"] = or_null(head.budget_verdict);
  out["score_histogram"] = json_vector(head.score_histogram);
  out["score_mixture"] = nullptr;
  if (head.best_k) {
    out["score_mixture"] = {{"k", *head.best_k}, {"density", json_vector(head.score_mixture)}};
  }
  out["verdict"] = head.verdict;
  out["verdict_kind"] = name(head.verdict_kind);
  out["reason"] = head.reason;
  out["causes"] = head.causes ? rows_json(*head.causes) : Json(nullptr);
  out["why"] = or_null(head.why);
  out["engine"] = name(head.engine);
  return out;
}

}  // namespace esscher
