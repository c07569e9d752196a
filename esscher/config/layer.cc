#include "esscher/config/layer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/config/icl.h"
#include "esscher/config/link.h"
#include "esscher/config/matrix_spec.h"
#include "esscher/config/sweep.h"
#include "esscher/task/classification.h"
#include "esscher/task/denoising.h"
#include "esscher/task/linear_family.h"
#include "esscher/task/pool.h"
#include "esscher/task/regression_nodes.h"
#include "esscher/task/single_index_task.h"

namespace esscher {
namespace {

constexpr Range kNotNegative = Range::at_least(0);
constexpr Range kDimensions = Range::between(1, 400);

Index read_dim(const Table& table) { return table.integer("dim", kDimensions); }

Matrix read_cov_or_identity(const Table& table, Index d) {
  return table.has("cov") ? read_cov_spec(table, "cov", d) : Matrix(Matrix::Identity(d, d));
}

Vector read_weights(const Table& table, Index n) {
  if (!table.has("weights")) return {};
  const std::vector<double> weights = table.numbers("weights", Range::positive());
  if (static_cast<Index>(weights.size()) != n) {
    table.fail("weights", std::to_string(n) + " numbers > 0");
  }
  return Vector::Map(weights.data(), n);
}

MixtureMeans read_means(const Table& table, Index components) {
  MixtureMeans out;
  out.law = table.enumerator_or("means_law", MeansLaw::fixed);
  if (out.is_fixed()) {
    out.fixed = table.matrix("means");
    if (table.has("dim") && read_dim(table) != out.fixed.cols()) {
      table.fail("dim", std::to_string(out.fixed.cols()) + ", the dimension of task.means");
    }
    return out;
  }
  out.dim = read_dim(table);
  out.count =
      components > 0 ? components : table.integer_or("components", 2, Range::between(1, 1000));
  out.scale = table.number_or("mean_scale", 1, Range::positive());
  return out;
}

ContextTask read_denoising(const Table& table) {
  DenoisingTask task;
  task.means = read_means(table, 0);
  task.weights = read_weights(table, task.means.rows());
  task.gamma = table.number_or("gamma", 1, kNotNegative);
  task.xi = table.number_or("xi", 1, kNotNegative);
  return denoising_task(task);
}

ContextTask read_classification(const Table& table) {
  ClassificationTask task;
  task.means = read_means(table, 2);
  if (task.means.rows() != 2) table.fail("means", "two rows, the means of the classes +1 and -1");
  task.weights = read_weights(table, 2);
  task.cov = read_cov_or_identity(table, task.means.cols());
  // Not written down either, for the sake of older runs.
  if (table.has("loss")) task.loss = table.enumerator_or("loss", TaskLoss::squared);
  return classification_task(task);
}

ContextTask read_single_index(const Table& table) {
  SingleIndexTask task;
  task.cov = read_cov_or_identity(table, read_dim(table));
  task.link = read_link(table);
  task.index_law = table.enumerator_or("index_law", IndexLaw::gaussian);
  task.task_variance = table.number_or("task_variance", 1, Range::positive());
  task.noise_variance = table.number_or("noise_variance", 0, kNotNegative);
  task.query_noise = table.boolean_or("query_noise", false);
  return single_index_task(task);
}

ContextTask read_pool(const Table& table) {
  PoolTask task;
  if (table.has("pool")) {
    task.pool = table.matrix("pool");
  } else {
    const Index d = read_dim(table);
    task.pool.resize(table.integer("pool_size", Range::between(1, 65536)), d);
    const double deviation = std::sqrt(table.number_or("task_variance", 1, Range::positive()));
    const Stream stream(static_cast<std::uint64_t>(table.integer_or("pool_seed", 0, kNotNegative)));
    stream.fill_normal(0, {task.pool.data(), static_cast<std::size_t>(task.pool.size())});
    task.pool *= deviation;
  }
  task.weights = read_weights(table, task.pool.rows());
  task.cov = read_cov_or_identity(table, task.pool.cols());
  task.noise_variance = table.number_or("noise_variance", 0, kNotNegative);
  task.query_noise = table.boolean_or("query_noise", false);
  return pool_task(task);
}

// Keys that only the linear family has, so that regression with one of them is of this family.
constexpr const char* kLinearKeys[] = {"task_cov", "rank", "nonzero", "cov_law"};

Matrix read_task_cov(const Table& table, Index d) {
  if (table.has("task_cov")) return read_cov_spec(table, "task_cov", d);
  const double variance = table.number_or("task_variance", 1, Range::positive());
  Vector values = Vector::Constant(d, variance);
  if (table.has("rank")) {
    const Index rank = table.integer("rank", Range::between(1, static_cast<double>(d)));
    values.tail(d - rank).setZero();
  }
  return values.asDiagonal();
}

ContextTask read_linear(const Table& table) {
  const Index d = read_dim(table);
  LinearFamilyTask task;
  task.task_cov = read_task_cov(table, d);
  task.cov = table.has("prompt_cov") ? read_cov_spec(table, "prompt_cov", d)
                                     : Matrix(Matrix::Identity(d, d));
  if (table.has("nonzero")) {
    task.nonzero = table.integer("nonzero", Range::between(1, static_cast<double>(d)));
  }
  task.cov_law = table.enumerator_or("cov_law", CovarianceLaw::fixed);
  if (task.cov_law == CovarianceLaw::scale) {
    task.scale_deviation = table.number_or("scale_deviation", 0.5, kNotNegative);
  }
  if (task.cov_law == CovarianceLaw::wishart) {
    task.degrees = table.integer_or("degrees", 2 * d, Range::between(1, 10000));
  }
  task.noise_variance = table.number_or("noise_variance", 0, kNotNegative);
  task.query_noise = table.boolean_or("query_noise", false);
  try {
    return linear_family_task(task);
  } catch (const ArgumentError& error) {
    table.fail_because("nonzero", error.what());
  }
}

std::vector<ModelKind> read_kinds(const Table& model, std::size_t heads) {
  const ModelKind kind = model.enumerator_or("kind", ModelKind::softmax);
  std::vector<ModelKind> out(heads, kind);
  if (!model.has("kinds")) return out;
  const std::vector<std::string> words = model.texts("kinds");
  if (words.size() != heads) {
    model.fail("kinds", std::to_string(heads) + " words, one for each head");
  }
  for (std::size_t h = 0; h < heads; ++h) {
    try {
      out[h] = parse_enum<ModelKind>(words[h]);
    } catch (const Error& error) {
      model.fail_because("kinds", error.what());
    }
  }
  return out;
}

// [m,D] of a matrix with m rows, or with D of which the last m act.
Matrix acting(const Table& init, std::string_view key, const Matrix& given, Index m, Index D) {
  const bool fits = given.cols() == D && (given.rows() == m || given.rows() == D);
  if (!fits) {
    init.fail_because(
        key, "shape is [" + std::to_string(given.rows()) + "," + std::to_string(given.cols()) +
                 "], expected [" + std::to_string(D) + "," + std::to_string(D) + "]" +
                 (m == D ? "" : " or [" + std::to_string(m) + "," + std::to_string(D) + "]"));
  }
  return given.bottomRows(m);
}

std::vector<Matrix> read_list(const Table& init, std::string_view key, Index D) {
  if (init.is_matrix_list(key)) return init.matrices(key);
  const bool is_rows = init.has(key) && init.value(key).array() != nullptr;
  if (is_rows) return {init.matrix(key)};
  return {read_matrix_spec(init, key, D, D)};
}

Layer read_dense(const Table& model, const Table& init, const ContextTask& task) {
  const Index D = task.token_dim, m = task.out_dim;
  const std::vector<Matrix> U = read_list(init, "U", D), V = read_list(init, "V", D);
  if (U.size() != V.size()) {
    init.fail("V", std::to_string(U.size()) + " matrices, as in U");
  }
  if (model.has("heads") && model.integer("heads") != static_cast<std::int64_t>(U.size())) {
    model.fail("heads", std::to_string(U.size()) + ", the number of matrices in init.U");
  }
  const std::vector<ModelKind> kinds = read_kinds(model, U.size());
  Layer out{Matrix::Zero(m, D), {}};
  for (std::size_t h = 0; h < U.size(); ++h) {
    out.heads.push_back({kinds[h], acting(init, "U", U[h], D, D), acting(init, "V", V[h], m, D)});
  }
  if (init.has("W")) {
    const bool is_rows = init.value("W").array() != nullptr;
    out.W = acting(init, "W", is_rows ? init.matrix("W") : read_matrix_spec(init, "W", D, D), m, D);
  }
  return out;
}

std::vector<ModelKind> read_kinds(const Table& model) {
  return read_kinds(model,
                    static_cast<std::size_t>(model.integer_or("heads", 1, Range::between(1, 8))));
}

// U = V = scale I in each head.
Layer read_identity(const Table& model, const ContextTask& task, double scale) {
  const Index D = task.token_dim, m = task.out_dim;
  const std::vector<ModelKind> kinds = read_kinds(model);
  Layer out{Matrix::Zero(m, D), {}};
  for (const ModelKind kind : kinds) {
    out.heads.push_back(
        {kind, scale * Matrix::Identity(D, D), scale * Matrix::Identity(D, D).bottomRows(m)});
  }
  return out;
}

// The coordinates of training: factors of U and V, if asked for.
LayerFactors read_factors(const Table& model, const ContextTask& task) {
  LayerFactors out;
  // Defaults are not written down: runs from before there were factors have none, and must go on.
  if (!model.has("parametrisation")) return out;
  out.space = model.enumerator_or("parametrisation", ParameterSpace::UV);
  if (out.space == ParameterSpace::block) {
    model.fail("parametrisation", "\"UV\", \"KQV\" or \"KQVO\" for this type of task");
  }
  if (!out.is_factored()) return out;
  out.key_dim = model.integer_or("key_dim", task.token_dim, Range::between(1, 10000));
  out.score_scale = read_score_scale(model, out.key_dim);
  return out;
}

Stream start_stream(const Table& init, std::uint64_t seed) {
  if (init.has("seed")) seed = static_cast<std::uint64_t>(init.integer("seed", kNotNegative));
  return Stream(seed).split(0);
}

Layer read_balanced(const Table& model, const Table& init, const ContextTask& task,
                    std::uint64_t seed) {
  const std::vector<ModelKind> kinds = read_kinds(model);
  const double alpha = init.number_or("alpha", 0.1, Range::positive());
  const Index D = task.token_dim, q = task.out_dim < D ? D - 1 : D;
  if (kinds.size() > 1) {
    return balanced_layer(task, kinds, alpha, Matrix(), start_stream(init, seed));
  }
  const Matrix shape = init.has("shape") ? read_cov_spec(init, "shape", q) : Matrix();
  return balanced_layer(task, kinds, alpha, shape, Stream(seed));
}

// The start of a model of this task and family, in the coordinates of model.parametrisation.
LayerModel read_start(const Table& model, LayerModel out, std::uint64_t seed) {
  const Table init = model.table_or_empty("init");
  out.factors = read_factors(model, out.task);
  const StartKind kind = init.enumerator_or("kind", StartKind::identity);
  const bool drawn = kind == StartKind::torch;
  switch (kind) {
    case StartKind::normal:
      init.fail("kind", "\"dense\", \"identity\", \"balanced\" or \"torch\" for this type of task");
    case StartKind::dense: out.start = read_dense(model, init, out.task); break;
    case StartKind::balanced: out.start = read_balanced(model, init, out.task, seed); break;
    case StartKind::torch: out.start = read_identity(model, out.task, 0); break;
    case StartKind::identity:
      out.start = read_identity(model, out.task, init.number_or("scale", 0.01));
      break;
  }
  try {
    if (drawn) return with_torch_start(out, start_stream(init, seed));
    (void)out.theta0();
    return out;
  } catch (const ArgumentError& error) {
    model.fail_because(out.factors.is_factored() ? "parametrisation" : "family", error.what());
  }
}

}  // namespace

TaskType read_task_type(const Table& root) {
  const Table task = root.table("task");
  // The default is not written down: runs from before there were types have none, and must go on.
  const TaskType type =
      task.has("type") ? task.enumerator_or("type", TaskType::regression) : TaskType::regression;
  const bool varied = std::any_of(std::begin(kLinearKeys), std::end(kLinearKeys),
                                  [&](const char* key) { return task.has(key); });
  return type == TaskType::regression && varied ? TaskType::linear : type;
}

ContextTask read_context_task(const Table& root) {
  const Table table = root.table("task");
  switch (read_task_type(root)) {
    case TaskType::denoising: return read_denoising(table);
    case TaskType::classification: return read_classification(table);
    case TaskType::single_index: return read_single_index(table);
    case TaskType::pool: return read_pool(table);
    case TaskType::linear: return read_linear(table);
    case TaskType::regression: break;
  }
  const LinearRegressionTask task = read_task(root);
  if (task.features != Features::gaussian) table.fail("features", "\"gaussian\" here");
  return regression_task_nodes(task);
}

LayerModel read_layer_model(const Table& root, const ContextTask& task, std::uint64_t seed) {
  const Table model = root.table_or_empty("model");
  LayerModel out{.task = task};
  out.family = model.enumerator_or("family", LayerFamily::full);
  return read_start(model, std::move(out), seed);
}

LayerProblem read_layer_problem(const Table& root, std::uint64_t seed) {
  allow_lab_keys(root);
  LayerProblem out{.task = read_context_task(root), .layer = {}, .lengths = {}, .risk = {}};
  out.layer = read_layer_model(root, out.task, seed).start;
  out.lengths = read_lengths(root, {read_length(root)});
  out.risk = read_flow(root, seed).risk;
  out.risk.engine = read_engine(root.table_or_empty("sweep"));
  return out;
}

LayerFlowProblem read_layer_flow_problem(const Table& root, std::uint64_t seed) {
  allow_lab_keys(root);
  LayerFlowProblem out{.model = read_layer_model(root, read_context_task(root), seed),
                       .length = read_length(root)};
  const FlowConfig flow = read_flow(root, seed);
  out.flow = flow.options;
  out.risk = flow.risk;
  return out;
}

LayerCompareProblem read_layer_compare_problem(const Table& root, std::uint64_t seed) {
  const FlowConfig flow = read_flow(root, seed);
  return {.flow = read_layer_flow_problem(root, seed),
          .lengths = read_compared_lengths(root),
          .eps = read_eps(root),
          .horizon_distance = flow.horizon,
          .points = flow.points};
}

OptimumProblem read_optimum_problem(const Table& root, std::uint64_t seed) {
  allow_lab_keys(root);
  OptimumProblem out{.task = read_context_task(root), .lengths = {}, .risk = {}};
  const Table model = root.table_or_empty("model");
  const bool is_factored =
      model.has("parametrisation") &&
      model.enumerator_or("parametrisation", ParameterSpace::UV) != ParameterSpace::UV;
  out.family =
      model.enumerator_or("family", is_factored ? LayerFamily::full : LayerFamily::scalars);
  if (model.has("init")) {
    const LayerModel read = read_start(model, {.task = out.task, .family = out.family}, seed);
    out.factors = read.factors;
    out.start = read.start;
    out.kinds.clear();
    for (const LayerHead& head : read.start.heads) out.kinds.push_back(head.kind);
  } else {
    out.factors = read_factors(model, out.task);
    out.kinds = read_kinds(model);
    if (is_factored && out.family != LayerFamily::full) {
      model.fail("family", "\"full\", because there is a parametrisation");
    }
  }
  out.lengths = read_lengths(
      root, {Length(10), Length(100), Length(1000), Length(10000), Length::infinity()});
  out.restarts = static_cast<int>(
      root.table_or_empty("flow").integer_or("restarts", 4, Range::between(1, 1000)));
  out.risk = read_flow(root, seed).risk;
  return out;
}

}  // namespace esscher
