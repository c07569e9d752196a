#include "esscher/training/study.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/risk/bayes.h"
#include "esscher/risk/closed_form.h"
#include "esscher/risk/heads_risk.h"

namespace esscher {
namespace {

std::string entry(Index i, Index j) { return "U_" + std::to_string(i) + "_" + std::to_string(j); }
std::string entry(Index i) { return "r_" + std::to_string(i); }

void put_readout(Json& row, const Readout& at) {
  for (Index i = 0; i < at.dim(); ++i) {
    for (Index j = 0; j < at.dim(); ++j) row[entry(i, j)] = number(at.U(i, j));
  }
  for (Index i = 0; i < at.dim(); ++i) row[entry(i)] = number(at.r(i));
}

Readout get_readout(const Json& row) {
  Index D = 0;
  while (row.contains(entry(D))) ++D;
  const auto value = [](const Json& x) { return x.is_number() ? x.get<double>() : NAN; };
  Readout at = Readout::zero(D);
  for (Index i = 0; i < D; ++i) {
    for (Index j = 0; j < D; ++j) at.U(i, j) = value(row[entry(i, j)]);
    at.r(i) = value(row[entry(i)]);
  }
  return at;
}

double distance(const Readout& a, const Readout& b) {
  return std::hypot((a.U - b.U).norm(), (a.r - b.r).norm());
}

// Where the flow must end if the formula applies: Gaussian features, infinite length or linear
// attention, balanced start.
std::optional<Readout> known_limit(const FlowStudy& study) {
  const bool formula =
      study.task.features == Features::gaussian && study.alpha > 0 &&
      (study.length.is_infinite() || study.kind == ModelKind::linear) &&
      (study.space.space == ParameterSpace::block || study.space.space == ParameterSpace::UV);
  if (!formula) return std::nullopt;
  try {
    return block_optimum(study.task, study.length, study.space.scale_balance(study.theta0));
  } catch (const ArgumentError&) {
    return std::nullopt;  // singular covariance
  }
}

Json flow_summary(const FlowStudy& study, const FlowResult& flow,
                  const std::optional<Readout>& limit) {
  const Readout end = study.space.readout(flow.end().theta);
  const Estimate risk = model_risk(study.task, end, study.kind, study.length, study.risk);
  const Estimate bayes = bayes_risk(study.task, study.length, 1000, study.risk.stream.split(2));
  // Predictions that are bilinear in (U, r): |U|^2 - |r|^2 is kept.
  const bool scale_free = study.kind == ModelKind::linear ||
                          (study.length.is_infinite() && study.task.features == Features::gaussian);
  Json row;
  row["what"] = "summary";
  row["model"] = name(study.kind);
  row["L"] = number(study.length);
  row["parametrisation"] = name(study.space.space);
  row["features"] = name(study.task.features);
  row["status"] = name(flow.status);
  row["message"] = flow.message;
  row["t"] = number(flow.end().t);
  row["risk"] = number(risk.value);
  row["risk_std_error"] = number(risk.std_error);
  row["engine"] = name(risk.engine);
  row["bayes"] = number(bayes.value);
  row["bayes_std_error"] = number(bayes.std_error);
  row["gradient_norm"] = number(flow.end().gradient_norm);
  const bool keeps = scale_free || study.space.conserved(study.theta0).size() > 0;
  const double drift =
      scale_free ? std::max(flow.conserved_drift, flow.scale_drift) : flow.conserved_drift;
  row["conserved_drift"] = keeps ? number(drift) : Json();
  row["energy_defect"] = number(flow.energy_defect);
  row["largest_increase"] = number(flow.largest_increase);
  row["steps"] = flow.steps;
  row["evaluations"] = flow.evaluations;
  row["alpha"] = study.alpha > 0 ? number(study.alpha) : Json();
  row["alpha_bound"] = number(balanced_start_bound(study.task));
  row["limit_distance"] = limit ? number(distance(end, *limit)) : Json();
  row["limit_b"] = limit ? number(limit->r(limit->dim() - 1)) : Json();
  put_readout(row, end);
  return row;
}

Json pick(const Json& row, std::initializer_list<const char*> columns) {
  Json out = Json::object();
  for (const char* column : columns) {
    if (row.contains(column)) out[column] = row[column];
  }
  return out;
}

// The columns of a row that are not entries of the readout.
Json without_readout(const Json& row) {
  Json out = Json::object();
  for (const auto& [key, value] : row.items()) {
    if (key.rfind("U_", 0) != 0 && key.rfind("r_", 0) != 0 && key != "what") out[key] = value;
  }
  return out;
}

// {"U": [[..]..], "V": [[..]..]}
Readout readout_of(const Json& document, const std::string& source) {
  const auto matrix = [&](const char* key) {
    const auto found = document.find(key);
    if (found == document.end() || !found->is_array() || found->empty()) {
      throw FileError(source + ": no matrix \"" + key + "\"");
    }
    const auto rows = static_cast<Index>(found->size());
    const auto cols = static_cast<Index>(found->at(0).size());
    Matrix m(rows, cols);
    for (Index i = 0; i < rows; ++i) {
      const Json& row = found->at(i);
      if (!row.is_array() || static_cast<Index>(row.size()) != cols) {
        throw FileError(source + ": \"" + key + "\" has rows of different lengths");
      }
      for (Index j = 0; j < cols; ++j) {
        if (!row[j].is_number())
          throw FileError(source + ": \"" + key + "\" has an entry that is no number");
        m(i, j) = row[j].get<double>();
      }
    }
    return m;
  };
  const Matrix U = matrix("U"), V = matrix("V");
  if (U.rows() != U.cols() || V.cols() != U.cols()) {
    throw FileError(source + ": U and V do not fit together");
  }
  return {U, V.row(V.rows() - 1)};
}

}  // namespace

std::vector<Json> flow_rows(const FlowStudy& study) {
  const RiskFunction risk = risk_function(study.task, study.kind, study.length, study.risk);
  const FlowResult flow = gradient_flow(risk, study.space, study.theta0, study.flow);
  const std::optional<Readout> limit = known_limit(study);
  std::vector<Json> rows;
  for (const FlowPoint& p : flow.path) {
    const Readout at = study.space.readout(p.theta);
    Json row;
    row["what"] = "path";
    row["t"] = number(p.t);
    row["risk"] = number(p.risk);
    row["gradient_norm"] = number(p.gradient_norm);
    row["distance"] = limit ? number(distance(at, *limit)) : Json();
    put_readout(row, at);
    rows.push_back(std::move(row));
  }
  rows.push_back(flow_summary(study, flow, limit));
  return rows;
}

Json flow_document(const std::vector<Json>& rows) {
  if (rows.empty() || rows.back().value("what", "") != "summary") {
    throw RuntimeFailure("flow_document: the run has no finished flow");
  }
  const Json& summary = rows.back();
  Json out = without_readout(summary);
  const Readout at = get_readout(summary);
  Matrix V = Matrix::Zero(at.dim(), at.dim());
  V.row(at.dim() - 1) = at.r;
  out["U"] = json_matrix(at.U);
  out["V"] = json_matrix(V);
  out["path"] = Json::array();
  for (const Json& row : rows) {
    if (row["what"] != "path") continue;
    out["path"].push_back(pick(row, {"t", "risk", "gradient_norm", "distance"}));
  }
  return out;
}

std::vector<Readout> heads_of(const Json& document, const std::string& source) {
  const Json& model = document.contains("parameters") ? document["parameters"] : document;
  const auto list = model.find("heads");
  if (list == model.end()) return {readout_of(model, source)};
  std::vector<Readout> heads;
  if (list->is_array()) {
    for (const Json& head : *list) heads.push_back(readout_of(head, source));
  }
  if (heads.empty()) throw FileError(source + ": \"heads\" is not a list of heads");
  for (const Readout& head : heads) {
    if (head.dim() != heads[0].dim()) throw FileError(source + ": heads of different sizes");
  }
  return heads;
}

std::vector<std::string> compare_keys(const CompareStudy& study) {
  std::vector<std::string> keys{"reference"};
  for (ModelKind kind : study.kinds) {
    for (Length L : study.lengths) keys.push_back(std::string(name(kind)) + " L=" + L.text());
  }
  for (ModelKind kind : study.kinds) {
    for (double eps : study.eps) keys.push_back(std::string(name(kind)) + " eps=" + to_text(eps));
  }
  return keys;
}

std::vector<Json> compare_rows(const CompareStudy& study, std::size_t index) {
  const TwinSetup& setup = study.setup;
  const FlowResult reference = reference_flow(setup);
  const std::size_t twins = study.kinds.size() * study.lengths.size();
  if (index > twins) {
    const std::size_t k = index - 1 - twins;
    const ModelKind kind = study.kinds[k / study.eps.size()];
    const double target = reference.end().risk;
    const LengthForRisk found =
        length_for_risk(setup, kind, target, study.eps[k % study.eps.size()]);
    Json row;
    row["what"] = "length";
    row["model"] = name(kind);
    row["eps"] = number(found.eps);
    row["target"] = number(target);
    row["length"] = found.length == 0 ? Json() : Json(found.length);
    row["status"] = found.length == 0 ? "not reached" : "found";
    row["risk"] = number(found.risk);
    row["risk_before"] = number(found.risk_before);
    return {row};
  }
  const bool is_reference = index == 0;
  const ModelKind kind =
      is_reference ? ModelKind::softmax : study.kinds[(index - 1) / study.lengths.size()];
  const Length L =
      is_reference ? Length::infinity() : study.lengths[(index - 1) % study.lengths.size()];
  const Twin twin = twin_flow(setup, reference, kind, L);
  const std::string model = is_reference ? "infinity" : std::string(name(kind));
  std::vector<Json> rows;
  for (const TwinPoint& p : twin.path) {
    rows.push_back({{"what", "path"},
                    {"model", model},
                    {"L", number(L)},
                    {"t", number(p.t)},
                    {"risk", number(p.risk)},
                    {"reference_risk", number(p.reference_risk)},
                    {"distance", number(p.distance)},
                    {"gradient_gap", number(p.gradient_gap)}});
  }
  Json row{{"what", "summary"},
           {"model", model},
           {"L", number(L)},
           {"status", name(twin.status)},
           {"t", number(twin.t_end)}};
  row["limiting_risk"] = number(twin.limiting_risk.value);
  row["std_error"] = number(twin.limiting_risk.std_error);
  row["engine"] = name(twin.limiting_risk.engine);
  if (!setup.own_task) {  // the best prediction of another task is not known
    const Estimate bayes =
        bayes_risk(setup.task, L, study.bayes_replicates, setup.risk.stream.split(2));
    row["bayes"] = number(bayes.value);
    row["bayes_std_error"] = number(bayes.std_error);
    row["excess"] = number(twin.limiting_risk.value - bayes.value);
  }
  row["sup_distance"] = number(twin.sup_distance);
  row["sup_gradient_gap"] = number(twin.sup_gradient_gap);
  row["sup_risk_gap"] = number(twin.sup_risk_gap);
  row["horizon"] = number(twin.horizon);
  put_readout(row, twin.end);
  rows.push_back(std::move(row));
  return rows;
}

Json compare_document(const std::vector<Json>& rows) {
  Json out{{"rows", Json::array()}, {"lengths", Json::array()}, {"path", Json::array()}};
  for (const Json& row : rows) {
    const std::string what = row["what"];
    out[what == "summary"  ? "rows"
        : what == "length" ? "lengths"
                           : "path"]
        .push_back(without_readout(row));
  }
  return out;
}

Json risk_document(const RiskStudy& study) {
  Json rows = Json::array();
  const auto add = [&](Length L, std::string_view model, const Estimate& e) {
    rows.push_back({{"L", number(L)},
                    {"model", model},
                    {"risk", number(e.value)},
                    {"std_error", number(e.std_error)},
                    {"engine", name(e.engine)},
                    {"n", e.n}});
  };
  for (Length L : study.lengths) {
    for (ModelKind kind : study.kinds) {
      add(L, name(kind), heads_risk(study.task, study.heads, kind, L, study.risk));
    }
    add(L, "bayes", bayes_risk(study.task, L, study.bayes_replicates, study.risk.stream.split(2)));
  }
  return {{"rows", rows}, {"risk_is", "half the mean squared error, target noise included"}};
}

}  // namespace esscher
