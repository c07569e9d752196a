// Flows and comparisons as flat rows, the form in which runs keep them, and the result documents
// made from rows alone, so that a run that was resumed or merged gives the same document.
//
//   flow     {"what":"path","t","risk","gradient_norm","distance","U_0_0",..,"r_0",..} and one
//            {"what":"summary","status",..}
//   compare  {"what":"path","model","L","t","risk","reference_risk","distance","gradient_gap"},
//            {"what":"summary","model","L","limiting_risk",..}, {"what":"length","model","eps",..}
//
// A "risk" is half a mean squared error, the noise of the target included.
#pragma once

#include <string>
#include <vector>

#include "esscher/json/json.h"
#include "esscher/training/twins.h"

namespace esscher {

struct FlowStudy {
  LinearRegressionTask task;
  ModelKind kind = ModelKind::softmax;
  Length length = Length::infinity();
  Parametrisation space;
  Vector theta0;
  FlowOptions flow;
  RiskOptions risk;
  double alpha = 0;  // of a balanced start, 0 for another one
};

std::vector<Json> flow_rows(const FlowStudy& study);
// {"status","t","risk","risk_std_error","U","V","conserved_drift",..,"limit":{..},"path":[..]}
Json flow_document(const std::vector<Json>& rows);

// The heads of a model document: an object with "U" [D,D] and "V" [.,D] (last row acts), or with a
// list of these in "heads", or with either in "parameters": what a flow or a training leaves.
// Errors name the source.
std::vector<Readout> heads_of(const Json& document, const std::string& source);

struct CompareStudy {
  TwinSetup setup;
  std::vector<ModelKind> kinds{ModelKind::softmax, ModelKind::linear};
  std::vector<Length> lengths;
  std::vector<double> eps;
  std::int64_t bayes_replicates = 1000;
};

// Names of the cells in order; rows of one of them.
std::vector<std::string> compare_keys(const CompareStudy& study);
std::vector<Json> compare_rows(const CompareStudy& study, std::size_t index);
// {"rows": summaries, "lengths": L(eps), "path": [..]}
Json compare_document(const std::vector<Json>& rows);

struct RiskStudy {
  LinearRegressionTask task;
  std::vector<Readout> heads;
  std::vector<ModelKind> kinds{ModelKind::softmax, ModelKind::linear};
  std::vector<Length> lengths;
  RiskOptions risk;
  std::int64_t bayes_replicates = 1000;
};

// {"rows":[{"L","model","risk","std_error","engine"}]}: each model and Bayes at each length.
Json risk_document(const RiskStudy& study);

}  // namespace esscher
