#include "esscher/json/training.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "esscher/base/error.h"
#include "esscher/json/rows.h"

namespace esscher {
namespace {

using Names = std::initializer_list<const char*>;

// Some columns of a row, with what is said of them in "not_finite".
template <HasColumns Row>
Json some_columns(const Row& row, Names names) {
  const Json all = row_json(row);
  Json out = Json::object();
  for (const char* name : names) out[name] = all.at(name);
  const auto found = all.find("not_finite");
  if (found == all.end()) return out;
  for (const char* name : names) {
    if (found->contains(name)) out["not_finite"][name] = found->at(name);
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

Json head_json(const Readout& head) {
  Matrix V = Matrix::Zero(head.dim(), head.dim());
  V.row(head.dim() - 1) = head.r;
  return {{"U", json_matrix(head.U)}, {"V", json_matrix(V)}};
}

Vector vector_of(const Json& values) {
  Vector v(static_cast<Index>(values.size()));
  for (Index i = 0; i < v.size(); ++i) v(i) = values.at(static_cast<std::size_t>(i)).get<double>();
  return v;
}

// {"count","mean","sum_of_squares"}, or [sum, sum of squares, count] of version 0.1.
Moments block_of(const Json& block) {
  if (block.is_object()) {
    return {block.at("count").get<std::int64_t>(), block.at("mean").get<double>(),
            block.at("sum_of_squares").get<double>()};
  }
  const double sum = block.at(0).get<double>(), square = block.at(1).get<double>();
  const auto count = block.at(2).get<std::int64_t>();
  if (count == 0) return {};
  const double mean = sum / static_cast<double>(count);
  return {count, mean, std::max(square - sum * mean, 0.0)};
}

}  // namespace

Json risk_document(const std::vector<RiskRow>& rows) {
  const TaskLoss loss = rows.empty() ? TaskLoss::squared : rows[0].loss.value_or(TaskLoss::squared);
  return {{"rows", rows_json(rows)},
          {"risk_is", std::string(mean_of(loss)) + ", target noise included"}};
}

Json flow_document(const FlowRecord& flow) {
  const FlowRow& end = flow.summary;
  Json out =
      some_columns(end, {"model", "L", "status", "message", "t", "risk", "risk_std_error", "engine",
                         "heavy", "bayes", "bayes_std_error", "gradient_norm", "conserved_drift",
                         "energy_defect", "largest_increase", "steps", "evaluations"});
  if (end.is_layer()) {
    out.update(some_columns(end, {"task", "loss", "family", "bound", "affine", "linear"}));
    out.update(layer_json(end.layer(end)));
  } else {
    out.update(some_columns(
        end, {"parametrisation", "features", "alpha", "alpha_bound", "limit_distance", "limit_b"}));
    out.update(head_json(end.readout()));
  }
  out["path"] = Json::array();
  for (const FlowRow& row : flow.path) {
    out["path"].push_back(some_columns(row, {"t", "risk", "gradient_norm", "distance"}));
  }
  return out;
}

Json layer_json(const Layer& layer) {
  Json kinds = Json::array(), U = Json::array(), V = Json::array();
  for (const LayerHead& head : layer.heads) {
    kinds.push_back(name(head.kind));
    U.push_back(json_matrix(head.U));
    V.push_back(json_matrix(head.V));
  }
  const bool one = layer.heads.size() == 1;
  return {{"kinds", kinds},
          {"U", one ? U.front() : U},
          {"V", one ? V.front() : V},
          {"W", json_matrix(layer.W)}};
}

Json compare_document(const CompareResult& result) {
  Json out{{"rows", Json::array()}, {"lengths", Json::array()}, {"path", Json::array()}};
  for (const TwinRow& row : result.twins) {
    Json twin = some_columns(row, {"model", "L", "status", "t", "limiting_risk", "std_error",
                                   "engine", "heavy", "sup_distance", "sup_gradient_gap",
                                   "sup_gradient_gap_std_error", "sup_risk_gap", "horizon"});
    if (row.bayes) twin.update(some_columns(row, {"bayes", "bayes_std_error", "excess"}));
    if (row.task)
      twin.update(some_columns(row, {"task", "loss", "bound", "affine", "U", "V", "W"}));
    out["rows"].push_back(std::move(twin));
  }
  for (const TwinRow& row : result.lengths) {
    out["lengths"].push_back(some_columns(row, {"model", "eps", "target", "length", "length_low",
                                                "length_high", "status", "risk", "risk_before"}));
  }
  for (const TwinRow& row : result.path) {
    out["path"].push_back(
        some_columns(row, {"model", "L", "t", "risk", "reference_risk", "distance", "gradient_gap",
                           "gradient_gap_std_error", "heavy"}));
  }
  return out;
}

Json train_document(const TrainResult& result) {
  Json out{{"steps", result.steps},
           {"status", result.status == TrainStatus::diverged ? "diverged" : "finished"},
           {"final_risk", some_columns(result.final_risk,
                                       {"L", "model", "risk", "std_error", "engine", "heavy"})}};
  out["loss"] = Json::array();
  for (const TrainRow& row : result.losses) {
    out["loss"].push_back(some_columns(row, {"step", "loss", "std_error"}));
  }
  const TaskLoss loss = result.final_risk.loss.value_or(TaskLoss::squared);
  out["loss_is"] = std::string(mean_of(loss)) + " on the training prompts";
  out["parameters"] = result.layer ? layer_json(*result.layer) : heads_json(result.heads);
  if (result.layer) out["task"] = result.task;
  return out;
}

Json heads_json(std::span<const Readout> heads) {
  if (heads.size() == 1) return head_json(heads[0]);
  Json list = Json::array();
  for (const Readout& head : heads) list.push_back(head_json(head));
  return {{"heads", std::move(list)}};
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

Json state_json(const TrainState& state) {
  Json curve = Json::array();
  for (const LossPoint& p : state.curve) {
    curve.push_back({p.first, p.last, number(p.loss), number(p.std_error)});
  }
  return {{"step", state.step},
          {"status", name(state.status)},
          {"seed", state.seed},
          {"last_loss", state.last_loss},
          {"theta", json_vector(state.theta)},
          {"first", json_vector(state.optimizer.first)},
          {"second", json_vector(state.optimizer.second)},
          {"block",
           {{"count", state.block.count()},
            {"mean", state.block.mean()},
            {"sum_of_squares", state.block.sum_of_squares()}}},
          {"curve", std::move(curve)}};
}

TrainState state_of(const Json& document) {
  try {
    TrainState state;
    state.seed = document.at("seed").get<std::uint64_t>();
    state.step = document.at("step").get<std::int64_t>();
    state.status = parse_enum<TrainStatus>(document.at("status").get<std::string>());
    state.last_loss = document.at("last_loss").get<double>();
    state.theta = vector_of(document.at("theta"));
    state.optimizer.first = vector_of(document.at("first"));
    state.optimizer.second = vector_of(document.at("second"));
    state.block = block_of(document.at("block"));
    for (const Json& p : document.at("curve")) {
      // The standard error of a single step is infinite, which JSON writes as null.
      state.curve.push_back({.first = p.at(0).get<std::int64_t>(),
                             .last = p.at(1).get<std::int64_t>(),
                             .loss = p.at(2).get<double>(),
                             .std_error = p.at(3).is_null() ? HUGE_VAL : p.at(3).get<double>()});
    }
    return state;
  } catch (const Json::exception& error) {
    throw FileError(std::string("training state: ") + error.what());
  } catch (const ArgumentError& error) {
    throw FileError(std::string("training state: ") + error.what());
  }
}

}  // namespace esscher
