// Tasks beyond regression, as their risks need them. A task draws the law of its tokens and a query
// z [D]; the target t [m] is random even then. Given law and query the prompt says nothing more
// about the target, so that a prediction `out` of a prompt has
//
//   E|out - t|^2 = E|out - E[t | law, z]|^2 + E tr Cov(t | law, z),
//
// and the second term is what no prediction removes. (task/loss.h has the same of another loss.) A
// node is one law and one query with these two numbers. Nodes are functions of standard normals and
// of a stratum, which is a class of queries with known probability (the component of a mixture, the
// member of a pool), so that one function serves quadrature, where normals are the points of a net,
// and draws.
//
//   denoising_task         task/denoising.h
//   classification_task    task/classification.h
//   single_index_task      task/single_index_task.h
//   pool_task              task/pool.h
//   linear_family_task     task/linear_family.h
//   regression_task_nodes  task/regression_nodes.h
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "esscher/base/enum_names.h"
#include "esscher/random/stream.h"
#include "esscher/task/loss.h"
#include "esscher/task/posterior.h"
#include "esscher/task/side_by_side.h"
#include "esscher/task/token_law.h"

namespace esscher {

enum class TaskType { regression, denoising, single_index, classification, pool, linear };

constexpr auto enum_names(TaskType) {
  return EnumNames<TaskType, 6>{"type of task",
                                {{{TaskType::regression, "regression"},
                                  {TaskType::denoising, "denoising"},
                                  {TaskType::single_index, "single_index"},
                                  {TaskType::classification, "classification"},
                                  {TaskType::pool, "pool"},
                                  {TaskType::linear, "linear"}}}};
}

struct ContextNode {
  std::shared_ptr<const TokenLaw> tokens;
  Vector query;         // z [D]
  Vector target;        // E[t | law, z] [m]
  double variance = 0;  // tr Cov(t | law, z)
};

// Second moments of query and target over everything that is random: what maps of the query alone
// are judged by.
struct QueryMoments {
  Vector z;       // E z [D]
  Matrix zz;      // E zz' [D,D]
  Vector t;       // E t [m]
  Matrix tz;      // E t z' [m,D]
  double tt = 0;  // E|t|^2
};

struct ContextTask {
  TaskType type = TaskType::denoising;
  TaskLoss loss = TaskLoss::squared;
  Index token_dim = 1;  // D
  Index out_dim = 1;    // m
  // Standard normals behind a node: those of the law of the tokens first, then those of the query.
  Index law_normals = 0, query_normals = 0;
  Vector strata;  // probabilities [S]
  // A pure function of normals [law_normals + query_normals] and the stratum.
  std::function<ContextNode(const VectorView& normals, Index stratum)> node;
  // One target given a node.
  std::function<Vector(const ContextNode& node, const Stream& stream)> target;
  // They may be an average over laws, drawn from the stream, unless exact_moments.
  std::function<QueryMoments(const Stream& stream)> moments;
  bool exact_moments = true;
  // Every prompt has the same law, which a predictor may therefore know.
  bool fixed_law = false;
  // E[t | prompt, z] where it has a formula or a quadrature, from the tokens of a prompt [L,D].
  std::function<Vector(const Matrix& prompt, const Vector& query)> posterior_mean = {};
  // Draws of many prompts at once, where the task has them.
  std::optional<SideBySide> side_by_side = {};
  PosteriorBy posterior_by = PosteriorBy::formula;  // chains without posterior_mean
  // What chains read where there is none.
  std::function<LawEvidence(const Matrix& prompt, const Vector& query)> evidence = {};
  // A prompt of so many tokens tells its law almost surely, as labels without noise may; 0: none
  // does.
  Index tells_law_from = 0;
};

// What a node is a function of.
struct NodeDraw {
  Vector normals;
  Index stratum = 0;
};
NodeDraw draw_normals(const ContextTask& task, const Stream& stream);

// The node of draw_normals.
ContextNode draw_node(const ContextTask& task, const Stream& stream);

// Least risk of maps of the query alone, half a mean squared error: A z + b, and A z.
double best_affine_risk(const QueryMoments& moments);
double best_linear_risk(const QueryMoments& moments);

}  // namespace esscher
