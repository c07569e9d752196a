// The tables of the in-context learning lab.
//
//   [task]   dim, task_variance = 1, noise_variance = 0, query_noise = false,
//            prompt_cov = 1.0, query_cov = prompt_cov, features = "gaussian"
//   [model]  kind = "softmax" | "linear"; parametrisation = "UV" | "KQV" | "KQVO" | "block";
//            heads = 1, at most kMaxHeads; key_dim = dim + 1; score_scale = 1 (a number, or
//            "1/sqrt(d)" for 1/sqrt(key_dim)); score_schedule (config/schedule.h), for risks at
//            other lengths than train.length; init, the start of training/start.h, one of
//              { kind = "balanced", alpha, shape, seed }    shape for one head, seed for several
//              { kind = "torch", seed }                     seed is that of the run unless given
//              { kind = "identity", scale }
//              { kind = "dense", U, V }                     V [dim+1,dim+1], its last row acts
//              { kind = "dense", heads = [{ U, V }, ..] }   for several heads
//   [train]  length = 100 or "inf"          (the prompt length of a flow; more in config/train.h)
//   [flow]   rtol, atol, t_end = "inf", stationary, max_steps, stepping = "bdf" | "adams" |
//            "runge-kutta", log2_nodes, scramblings, draws, points, horizon
//   [sweep]  lengths = [..] or { from, to, per_decade }; eps = [..]
#pragma once

#include <cstdint>
#include <vector>

#include "esscher/config/table.h"
#include "esscher/risk/risk_rows.h"
#include "esscher/training/flow_rows.h"
#include "esscher/training/start.h"
#include "esscher/training/twin_rows.h"

namespace esscher {

LinearRegressionTask read_task(const Table& root);

// model.score_scale: a number, 1 unless given, or "1/sqrt(d)" of this key dimension.
double read_score_scale(const Table& model, Index key_dim);

struct ModelConfig {
  ModelKind kind = ModelKind::softmax;
  Parametrisation space;
  Index heads = 1;
  StartOptions start;
  Vector theta0;  // start_parameters of all this
};

// The task gives the sizes and the default alpha, half of balanced_start_bound. The seed of the run
// serves random starts.
ModelConfig read_model(const Table& root, const LinearRegressionTask& task, std::uint64_t seed);

// [flow] holds the tolerances, the options of the risk and what a comparison records.
struct FlowConfig {
  FlowOptions options;
  RiskOptions risk;
  int points = 100;
  double horizon = 0.1;
};
FlowConfig read_flow(const Table& root, std::uint64_t seed);

// Reads train.length.
Length read_length(const Table& root);
// Reads sweep.lengths; `fallback` is the answer if the user wrote none.
std::vector<Length> read_lengths(const Table& root, const std::vector<Length>& fallback);
// The same of a comparison, at 10, 100 and 1000 tokens if the user wrote none.
std::vector<Length> read_compared_lengths(const Table& root);
// Reads sweep.eps; the list is empty if the user wrote none.
std::vector<double> read_eps(const Table& root);

// One file serves every verb of the lab: a key that another verb reads is no error. This allows the
// keys of [train] and [sweep], and [preset].
void allow_lab_keys(const Table& root);

// Reads the whole of a flow, a comparison, or a table of risks of the model at its start. Throws
// CapabilityError for more than one head.
FlowProblem read_flow_problem(const Table& root, std::uint64_t seed);
CompareProblem read_compare_problem(const Table& root, std::uint64_t seed);
RiskProblem read_risk_problem(const Table& root, std::uint64_t seed);
// The same for heads that are given: of [model] only the score_schedule is read.
RiskProblem read_risk_problem(const Table& root, std::uint64_t seed, std::vector<Readout> heads);

}  // namespace esscher
