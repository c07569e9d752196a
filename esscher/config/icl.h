// The tables of the in-context learning lab.
//
//   [task]   dim, task_variance = 1, noise_variance = 0, query_noise = false,
//            prompt_cov = 1.0, query_cov = prompt_cov, features = "gaussian"
//   [model]  kind = "softmax" | "linear"; parametrisation = "UV" | "KQV" | "KQVO" | "block";
//            heads = 1; key_dim = dim + 1; score_scale = 1 (a number, or "1/sqrt(d)" for
//            1/sqrt(key_dim)); init = { kind = "balanced", alpha, shape }
//              | { kind = "torch", seed = 0 } | { kind = "identity", scale }
//              | { kind = "dense", U, V } with V [dim+1,dim+1], of which the last row acts;
//            several heads take balanced, torch or identity
//   [train]  length = 100 or "inf"          (the prompt length of a flow; more in config/train.h)
//   [flow]   rtol, atol, t_end = "inf", stationary, max_steps, stepping = "bdf" | "adams",
//            log2_nodes, scramblings, draws, points, horizon
//   [sweep]  lengths = [..] or { from, to, per_decade }; eps = [..]
//   [preset] name, title, provenance, expected     (what a file of experiments/ says of itself)
#pragma once

#include <vector>

#include "esscher/config/table.h"
#include "esscher/training/study.h"

namespace esscher {

LinearRegressionTask read_task(const Table& root);

struct ModelConfig {
  ModelKind kind = ModelKind::softmax;
  Parametrisation space;
  Index heads = 1;
  std::string init;  // the kind of init
  double alpha = 0;  // of the balanced start
  Vector theta0;     // one head; empty if heads > 1
};

// Needs the task for sizes and for the default alpha, half of balanced_start_bound.
ModelConfig read_model(const Table& root, const LinearRegressionTask& task);

// The flow of L = train.length, with tolerances and the options of its risk.
struct FlowConfig {
  Length length = 100;
  FlowOptions options;
  RiskOptions risk;
  int points = 100;
  double horizon = 0.1;
};
FlowConfig read_flow(const Table& root, std::uint64_t seed);

// sweep.lengths, or `fallback` if the user wrote none.
std::vector<Length> read_lengths(const Table& root, const std::vector<Length>& fallback);
// sweep.eps, or none.
std::vector<double> read_eps(const Table& root);

// The whole of a flow or a comparison; [preset] is marked as read. One head: CapabilityError
// otherwise.
FlowStudy read_flow_study(const Table& root, std::uint64_t seed);
CompareStudy read_compare_study(const Table& root, std::uint64_t seed);

// Throws CapabilityError unless the model has one head.
void check_one_head(const ModelConfig& model);

// Marks [preset] as read, so that a file of experiments/ is an ordinary --config too.
void skip_preset(const Table& root);

}  // namespace esscher
