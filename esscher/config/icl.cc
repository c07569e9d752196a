#include "esscher/config/icl.h"

#include <cmath>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/config/layer.h"
#include "esscher/config/matrix_spec.h"
#include "esscher/config/presets.h"
#include "esscher/config/schedule.h"
#include "esscher/config/sweep.h"
#include "esscher/config/train.h"

namespace esscher {
namespace {

constexpr Range kNotNegative = Range::at_least(0);

// { U, V }
Readout read_head(const Table& table, Index D) {
  return {read_matrix_spec(table, "U", D, D), read_matrix_spec(table, "V", D, D).row(D - 1)};
}

StartOptions read_start(const Table& init, const LinearRegressionTask& task, Index heads) {
  const Index d = task.dim, D = d + 1;
  StartOptions start;
  start.kind = init.enumerator_or("kind", heads == 1 ? StartKind::balanced : StartKind::torch);
  const auto read_seed = [&] {
    if (init.has("seed")) start.seed = init.integer("seed", kNotNegative);
  };
  switch (start.kind) {
    case StartKind::torch: read_seed(); break;
    case StartKind::balanced:
      start.alpha = init.number_or("alpha", 0.5 * balanced_start_bound(task), Range::positive());
      if (heads == 1 && init.has("shape")) start.shape = read_cov_spec(init, "shape", d);
      if (heads > 1) read_seed();
      break;
    case StartKind::identity: start.alpha = init.number_or("scale", 0.01); break;
    case StartKind::normal:
      start.alpha = init.number_or("scale", 0.01, Range::positive());
      read_seed();
      break;
    case StartKind::dense:
      if (heads == 1 && !init.has("heads")) {
        start.dense = {read_head(init, D)};
        break;
      }
      for (const Table& head : init.tables("heads")) start.dense.push_back(read_head(head, D));
      break;
  }
  return start;
}

double read_scale_of(const Table& model, const Parametrisation& space) {
  const double scale = read_score_scale(model, space.key_dim);
  if (!space.is_factored() && scale != 1) {
    model.fail("score_scale", "1 unless parametrisation is KQV or KQVO");
  }
  return scale;
}

double read_end(const Table& flow, double fallback) {
  if (!flow.has("t_end")) return fallback;
  const bool is_word = std::holds_alternative<std::string>(flow.value("t_end").data);
  if (is_word && flow.choice("t_end", {"inf"}) == "inf") return HUGE_VAL;
  return flow.number("t_end", Range::positive());
}

void check_one_head(const ModelConfig& model) {
  if (model.heads == 1) return;
  throw CapabilityError("model.heads is " + std::to_string(model.heads) +
                        ": exact risks and flows have one head; use icl train for several");
}

FlowSetup setup_of(const LinearRegressionTask& task, const ModelConfig& model,
                   const FlowConfig& flow) {
  return {.task = task,
          .space = model.space,
          .theta0 = model.theta0,
          .flow = flow.options,
          .risk = flow.risk};
}

}  // namespace

double read_score_scale(const Table& model, Index key_dim) {
  const bool is_word = model.has("score_scale") &&
                       std::holds_alternative<std::string>(model.value("score_scale").data);
  return is_word && !model.choice("score_scale", {"1/sqrt(d)"}).empty()
             ? 1 / std::sqrt(static_cast<double>(key_dim))
             : model.number_or("score_scale", 1);
}

LinearRegressionTask read_task(const Table& root) {
  const Table table = root.table("task");
  if (read_task_type(root) != TaskType::regression) {
    table.fail("type",
               "\"regression\"; other types are for icl risk, flow, train, compare and optimum");
  }
  LinearRegressionTask task;
  task.dim = table.integer("dim", Range::between(1, 1000));
  task.task_variance = table.number_or("task_variance", 1, kNotNegative);
  task.noise_variance = table.number_or("noise_variance", 0, kNotNegative);
  task.query_noise = table.boolean_or("query_noise", false);
  const Index d = task.dim;
  task.prompt_cov =
      table.has("prompt_cov") ? read_cov_spec(table, "prompt_cov", d) : Matrix::Identity(d, d);
  task.query_cov = table.has("query_cov") ? read_cov_spec(table, "query_cov", d) : task.prompt_cov;
  task.features = table.enumerator_or("features", Features::gaussian);
  return task;
}

ModelConfig read_model(const Table& root, const LinearRegressionTask& task, std::uint64_t seed) {
  const Table table = root.table_or_empty("model");
  ModelConfig out;
  out.kind = table.enumerator_or("kind", ModelKind::softmax);
  out.space.space = table.enumerator_or("parametrisation", ParameterSpace::UV);
  out.space.token_dim = task.dim + 1;
  out.space.key_dim = table.integer_or("key_dim", task.dim + 1, Range::between(1, 10000));
  out.space.score_scale = read_scale_of(table, out.space);
  out.heads = table.integer_or("heads", 1, Range::between(1, kMaxHeads));
  if (table.has("score_schedule")) (void)read_score_factors(root, {});  // a slip is named here
  const Table init = table.table_or_empty("init");
  out.start = read_start(init, task, out.heads);
  try {
    out.theta0 = start_parameters(out.space, out.heads, out.start, seed);
  } catch (const Error& error) {
    init.fail_because("kind", error.what());
  }
  return out;
}

FlowConfig read_flow(const Table& root, std::uint64_t seed) {
  const Table flow = root.table_or_empty("flow");
  FlowConfig out;
  FlowOptions& o = out.options;
  o.rtol = flow.number_or("rtol", o.rtol, Range::positive());
  o.atol = flow.number_or("atol", o.atol, Range::positive());
  o.t_end = read_end(flow, o.t_end);
  o.stationary = flow.number_or("stationary", o.stationary, kNotNegative);
  o.max_steps = flow.integer_or("max_steps", o.max_steps, Range::at_least(1));
  o.stepping = flow.enumerator_or("stepping", o.stepping);
  RiskOptions& r = out.risk;
  r.log2_nodes = static_cast<int>(flow.integer_or("log2_nodes", 12, Range::between(1, 24)));
  r.scramblings = static_cast<int>(flow.integer_or("scramblings", 8, Range::between(2, 1000)));
  r.draws = flow.integer_or("draws", 4000, Range::at_least(2));
  r.stream = Stream(seed);
  out.points = static_cast<int>(flow.integer_or("points", 100, Range::between(2, 10000)));
  out.horizon = flow.number_or("horizon", 0.1, Range::positive());
  return out;
}

Length read_length(const Table& root) {
  return root.table_or_empty("train").length_or("length", Length(100));
}

std::vector<Length> read_lengths(const Table& root, const std::vector<Length>& fallback) {
  const std::optional<Table> sweep = root.find_table("sweep");
  if (!sweep || !sweep->has("lengths")) return fallback;
  if (sweep->value("lengths").map() == nullptr) return sweep->lengths("lengths");
  std::vector<Length> out;
  for (const std::int64_t L : read_length_grid(sweep->table("lengths"))) out.emplace_back(L);
  return out;
}

std::vector<Length> read_compared_lengths(const Table& root) {
  return read_lengths(root, {Length(10), Length(100), Length(1000)});
}

std::vector<double> read_eps(const Table& root) {
  const std::optional<Table> sweep = root.find_table("sweep");
  if (!sweep || !sweep->has("eps")) return {};
  return sweep->numbers("eps", Range::positive());
}

void allow_lab_keys(const Table& root) {
  allow_train_keys(root);
  if (const std::optional<Table> model = root.find_table("model")) model->allow({"family"});
  if (const std::optional<Table> flow = root.find_table("flow")) flow->allow({"restarts"});
  if (const std::optional<Table> sweep = root.find_table("sweep")) sweep->allow({"lengths", "eps"});
  allow_preset(root);
}

FlowProblem read_flow_problem(const Table& root, std::uint64_t seed) {
  allow_lab_keys(root);
  const LinearRegressionTask task = read_task(root);
  const ModelConfig model = read_model(root, task, seed);
  check_one_head(model);
  return {.setup = setup_of(task, model, read_flow(root, seed)),
          .kind = model.kind,
          .length = read_length(root),
          .alpha = model.start.kind == StartKind::balanced ? model.start.alpha : 0};
}

CompareProblem read_compare_problem(const Table& root, std::uint64_t seed) {
  const FlowConfig flow = read_flow(root, seed);
  CompareProblem problem;
  static_cast<FlowSetup&>(problem.setup) = read_flow_problem(root, seed).setup;
  problem.setup.points = flow.points;
  problem.setup.horizon_distance = flow.horizon;
  problem.lengths = read_compared_lengths(root);
  problem.eps = read_eps(root);
  return problem;
}

RiskProblem read_risk_problem(const Table& root, std::uint64_t seed, std::vector<Readout> heads) {
  allow_lab_keys(root);
  RiskProblem out{.task = read_task(root),
                  .heads = std::move(heads),
                  .lengths = read_lengths(root, {read_length(root)}),
                  .risk = read_flow(root, seed).risk};
  out.factors = read_score_factors(root, out.lengths);
  if (const std::optional<Table> model = root.find_table("model")) model->allow_all();
  return out;
}

RiskProblem read_risk_problem(const Table& root, std::uint64_t seed) {
  const ModelConfig model = read_model(root, read_task(root), seed);
  check_one_head(model);
  return read_risk_problem(root, seed, {model.space.readout(model.theta0)});
}

}  // namespace esscher
