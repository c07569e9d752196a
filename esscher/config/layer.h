// Tasks beyond regression and the layers that learn them.
//
//   [task]   type = "denoising"       means = [[..], ..], or dim, components = 2 and means_law =
//                                     "gaussian" | "sphere", mean_scale = 1; weights; gamma = xi = 1
//            type = "single_index"    dim, link = "tanh", coefficients, noise_variance = 0,
//                                     query_noise = false, cov = 1.0, index_law = "gaussian",
//                                     task_variance = 1
//            type = "classification"  means of the classes +1 and -1, or dim and means_law, mean_scale;
//                                     weights, cov = 1.0, loss = "squared" | "logistic"
//            type = "pool"            pool = [[..], ..], or dim, pool_size and pool_seed; weights,
//                                     cov = 1.0, noise_variance = 0, query_noise = false
//            type = "linear"          dim, prompt_cov = 1.0, noise_variance = 0, query_noise = false;
//                                     task_cov, or task_variance = 1 and rank; nonzero; cov_law =
//                                     "fixed" | "scale" (scale_deviation) | "wishart" (degrees)
//   [model]  kind = "softmax" | "linear", or kinds = [..], one for each head
//            init = { kind = "dense", U, V, W = 0 }      U and V may be lists, one matrix per head
//            family = "scalars" | "diagonal" | "full": what icl optimum searches ("scalars" unless
//            given), and where icl flow, icl train and icl compare move ("full" unless given); heads = 1
//            init = { kind = "identity", scale = 0.01 }  U = V = scale I; heads = 1 of them
//            init = { kind = "torch", seed }             uniform entries; heads = 1 of them
//            init = { kind = "balanced", alpha = 0.1, shape, seed }   |U|_F = |V|_F = alpha
//            parametrisation = "UV" | "KQV" | "KQVO", key_dim, score_scale: as for regression
//   [sweep]  engine = "auto" | "exact" | "direct": how icl risk averages over finite prompts
//
// Tasks with labels read the last rows of V and W, which may be given alone.
#pragma once

#include <cstdint>

#include "esscher/config/table.h"
#include "esscher/risk/layer_risk.h"
#include "esscher/training/layer_flow.h"
#include "esscher/training/layer_optimum.h"
#include "esscher/training/layer_twins.h"

namespace esscher {

// task.type, "regression" unless given. Regression with task_cov, rank, nonzero or cov_law is
// "linear".
TaskType read_task_type(const Table& root);

// The task of any type; regression with Gaussian features.
ContextTask read_context_task(const Table& root);

// The layer where a flow or a training starts, in the family model.family, "full" unless given, or
// in the factors of model.parametrisation.
LayerModel read_layer_model(const Table& root, const ContextTask& task, std::uint64_t seed);

// Reads the whole of a table of risks.
LayerProblem read_layer_problem(const Table& root, std::uint64_t seed);

// Reads the whole of a flow of that layer.
LayerFlowProblem read_layer_flow_problem(const Table& root, std::uint64_t seed);

// Reads the whole of a comparison of that flow at several lengths, with its flow at infinity.
LayerCompareProblem read_layer_compare_problem(const Table& root, std::uint64_t seed);

// Reads the whole of a search for the best layer, flow.restarts = 4 included. The heads are those
// of model.heads, model.kind and model.kinds; model.init, if given, is the first of the starts.
OptimumProblem read_optimum_problem(const Table& root, std::uint64_t seed);

}  // namespace esscher
