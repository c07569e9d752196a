#include "esscher/config/icl.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/config/matrix_spec.h"
#include "esscher/config/sweep.h"

namespace esscher {
namespace {

constexpr Range kNotNegative = Range::at_least(0);

// PyTorch's nn.Linear without bias: iid uniform on +-1/sqrt(fan_in); every block here has fan-in
// D, except that block and UV spaces have no such layer.
Vector torch_start(const Parametrisation& space, std::uint64_t seed) {
  Vector theta(space.size());
  Stream(seed).fill_uniform(0, {theta.data(), static_cast<std::size_t>(theta.size())});
  const double bound = 1 / std::sqrt(static_cast<double>(space.token_dim));
  return (2 * theta.array() - 1) * bound;
}

Vector read_start(const Table& model, const LinearRegressionTask& task, ModelConfig& out) {
  const Index d = task.dim, D = d + 1;
  const Table init = model.table_or_empty("init");
  out.init = init.choice_or("kind", {"balanced", "torch", "identity", "dense"}, "balanced");
  if (out.init == "torch") {
    const std::uint64_t seed = init.integer_or("seed", 0, kNotNegative);
    if (out.space.space != ParameterSpace::KQV && out.space.space != ParameterSpace::KQVO) {
      init.fail_because("kind", "init 'torch' needs parametrisation KQV or KQVO");
    }
    return torch_start(out.space, seed);
  }
  Readout start = Readout::zero(D);
  if (out.init == "balanced") {
    out.alpha = init.number_or("alpha", 0.5 * balanced_start_bound(task), Range::positive());
    const Matrix shape = init.has("shape") ? read_cov_spec(init, "shape", d) : Matrix();
    start = balanced_start(d, out.alpha, shape);
  } else if (out.init == "identity") {
    const double scale = init.number_or("scale", 0.01);
    start.U.topLeftCorner(d, d) = scale * Matrix::Identity(d, d);
    start.r(d) = scale;
  } else {
    start.U = read_matrix_spec(init, "U", D, D);
    start.r = read_matrix_spec(init, "V", D, D).row(d);
  }
  try {
    return parameters_of(out.space, start);
  } catch (const ArgumentError& error) {
    init.fail_because("kind", error.what());
  }
}

}  // namespace

LinearRegressionTask read_task(const Table& root) {
  const Table table = root.table("task");
  LinearRegressionTask task;
  task.dim = table.integer("dim", Range::between(1, 1000));
  task.task_variance = table.number_or("task_variance", 1, kNotNegative);
  task.noise_variance = table.number_or("noise_variance", 0, kNotNegative);
  task.query_noise = table.boolean_or("query_noise", false);
  const Index d = task.dim;
  task.prompt_cov =
      table.has("prompt_cov") ? read_cov_spec(table, "prompt_cov", d) : Matrix::Identity(d, d);
  task.query_cov = table.has("query_cov") ? read_cov_spec(table, "query_cov", d) : task.prompt_cov;
  task.features = parse_features(
      table.choice_or("features", {"gaussian", "rademacher", "uniform", "sphere"}, "gaussian"));
  return task;
}

ModelConfig read_model(const Table& root, const LinearRegressionTask& task) {
  const Table table = root.table_or_empty("model");
  ModelConfig out;
  out.kind = parse_model_kind(table.choice_or("kind", {"softmax", "linear"}, "softmax"));
  out.space.space = parse_parameter_space(
      table.choice_or("parametrisation", {"block", "UV", "KQV", "KQVO"}, "UV"));
  out.space.token_dim = task.dim + 1;
  out.space.key_dim = table.integer_or("key_dim", task.dim + 1, Range::between(1, 10000));
  if (table.has("score_scale") &&
      std::holds_alternative<std::string>(table.value("score_scale").data)) {
    (void)table.choice("score_scale", {"1/sqrt(d)"});
    out.space.score_scale = 1 / std::sqrt(static_cast<double>(out.space.key_dim));
  } else {
    out.space.score_scale = table.number_or("score_scale", 1);
  }
  const bool factored =
      out.space.space == ParameterSpace::KQV || out.space.space == ParameterSpace::KQVO;
  if (!factored && out.space.score_scale != 1) {
    table.fail("score_scale", "1 unless parametrisation is KQV or KQVO");
  }
  out.heads = table.integer_or("heads", 1, Range::between(1, 64));
  if (out.heads == 1) {
    out.theta0 = read_start(table, task, out);
    return out;
  }
  const Table init = table.table_or_empty("init");
  out.init = init.choice_or("kind", {"balanced", "torch", "identity"}, "torch");
  if (out.init == "balanced") {
    out.alpha = init.number_or("alpha", 0.5 * balanced_start_bound(task), Range::positive());
  } else if (out.init == "identity") {
    out.alpha = init.number_or("scale", 0.01, Range::positive());
  }
  return out;
}

FlowConfig read_flow(const Table& root, std::uint64_t seed) {
  const Table train = root.table_or_empty("train");
  // One file serves flows and training: what only training reads (config/train.h) is no error here.
  for (const char* key :
       {"optimizer", "learning_rate", "momentum", "beta1", "beta2", "epsilon", "weight_decay",
        "batch", "steps", "gradient", "loss", "curve_block", "checkpoints"}) {
    if (train.has(key)) (void)train.value(key);
  }
  const Table flow = root.table_or_empty("flow");
  FlowConfig out;
  out.length = train.length_or("length", Length(100));
  FlowOptions& o = out.options;
  o.rtol = flow.number_or("rtol", o.rtol, Range::positive());
  o.atol = flow.number_or("atol", o.atol, Range::positive());
  const bool forever =
      flow.has("t_end") && std::holds_alternative<std::string>(flow.value("t_end").data);
  if (forever) {
    (void)flow.choice("t_end", {"inf"});
  } else if (flow.has("t_end")) {
    o.t_end = flow.number("t_end", Range::positive());
  }
  o.stationary = flow.number_or("stationary", o.stationary, kNotNegative);
  o.max_steps = flow.integer_or("max_steps", o.max_steps, Range::at_least(1));
  o.stepping = flow.choice_or("stepping", {"bdf", "adams"}, "bdf") == "bdf" ? Stepping::bdf
                                                                            : Stepping::adams;
  RiskOptions& r = out.risk;
  r.log2_nodes = static_cast<int>(flow.integer_or("log2_nodes", 12, Range::between(1, 24)));
  r.scramblings = static_cast<int>(flow.integer_or("scramblings", 8, Range::between(2, 1000)));
  r.draws = flow.integer_or("draws", 4000, Range::at_least(2));
  r.stream = Stream(seed);
  out.points = static_cast<int>(flow.integer_or("points", 100, Range::between(2, 10000)));
  out.horizon = flow.number_or("horizon", 0.1, Range::positive());
  return out;
}

std::vector<Length> read_lengths(const Table& root, const std::vector<Length>& fallback) {
  const std::optional<Table> sweep = root.find_table("sweep");
  if (!sweep || !sweep->has("lengths")) return fallback;
  if (sweep->value("lengths").map() == nullptr) return sweep->lengths("lengths");
  std::vector<Length> out;
  for (const std::int64_t L : read_length_grid(sweep->table("lengths"))) out.emplace_back(L);
  return out;
}

std::vector<double> read_eps(const Table& root) {
  const std::optional<Table> sweep = root.find_table("sweep");
  if (!sweep || !sweep->has("eps")) return {};
  return sweep->numbers("eps", Range::positive());
}

void check_one_head(const ModelConfig& model) {
  if (model.heads == 1) return;
  throw CapabilityError("model.heads is " + std::to_string(model.heads) +
                        ": exact risks and flows have one head; use icl train for several");
}

FlowStudy read_flow_study(const Table& root, std::uint64_t seed) {
  FlowStudy study;
  study.task = read_task(root);
  const ModelConfig model = read_model(root, study.task);
  check_one_head(model);
  const FlowConfig flow = read_flow(root, seed);
  study.kind = model.kind;
  study.length = flow.length;
  study.space = model.space;
  study.theta0 = model.theta0;
  study.flow = flow.options;
  study.risk = flow.risk;
  study.alpha = model.alpha;
  skip_preset(root);
  return study;
}

CompareStudy read_compare_study(const Table& root, std::uint64_t seed) {
  const FlowStudy flow = read_flow_study(root, seed);
  const FlowConfig more = read_flow(root, seed);
  CompareStudy study;
  study.setup.task = flow.task;
  study.setup.space = flow.space;
  study.setup.theta0 = flow.theta0;
  study.setup.flow = flow.flow;
  study.setup.risk = flow.risk;
  study.setup.points = more.points;
  study.setup.horizon_distance = more.horizon;
  study.lengths = read_lengths(root, {Length(10), Length(100), Length(1000)});
  study.eps = read_eps(root);
  return study;
}

void skip_preset(const Table& root) {
  const std::optional<Table> preset = root.find_table("preset");
  if (!preset) return;
  for (const std::string& key : preset->keys()) (void)preset->value(key);
}

}  // namespace esscher
