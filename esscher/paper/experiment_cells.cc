// What the experiment trains: default starts by SGD, the start of the theorem by gradient flow, and the
// stationary points where they end.
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "esscher/base/cholesky.h"
#include "esscher/base/eigensystem.h"
#include "esscher/base/error.h"
#include "esscher/paper/experiment.h"
#include "esscher/risk/bayes.h"
#include "esscher/risk/risk.h"
#include "esscher/training/flow.h"
#include "esscher/training/trainer.h"

namespace esscher::paper {

// The authors: 300000 steps of 1e-3 on 128 prompts. Shorter runs keep the training time steps *
// rate (tiny: a part of it).
Schedule schedule(const Options& options) {
  return options.pick<Schedule>({400, 1e-1, 16, 3}, {6000, 5e-2, 32, 32}, {300000, 1e-3, 128, 32});
}

std::vector<std::int64_t> default_lengths(const Options& options) {
  if (options.size == Size::tiny) return {10, 100};
  if (options.size == Size::quick) return {10, 100, 1000};
  return {10, 20, 50, 100, 200, 500, 1000};
}

namespace {

// Released code: the prompt goes through the Cholesky factor C of Sigma twice, the query never.
LinearRegressionTask as_released(LinearRegressionTask task) {
  const Matrix C = cholesky(task.prompt_cov).value();
  const Matrix CC = C * C;
  task.prompt_cov = CC * CC.transpose();
  task.query_cov = Matrix::Identity(task.dim, task.dim);
  return task;
}

}  // namespace

LinearRegressionTask task_of(ExperimentPreset preset) {
  const LinearRegressionTask task = TrainConfig::authors(ModelKind::softmax, 10).task.regression();
  return preset == ExperimentPreset::released ? as_released(task) : task;
}

double floor_of(const LinearRegressionTask& task) { return 2 * task.irreducible_risk(); }

namespace {

// Lengths of flows from the theorem's start, which cost the same at any length.
std::vector<std::int64_t> flow_lengths(const Options& options) {
  if (options.size == Size::tiny) return {10, 1000, 10000};
  return {10, 100, 1000, 10000, 100000};
}

RiskOptions nodes(const Options& options) {
  RiskOptions out;
  out.log2_nodes = options.pick(10, 11, 13);
  out.stream = Stream(options.seed).split(29);
  return out;
}

struct TrainingCell {
  ExperimentPreset preset;
  ModelKind model;
  Length length;
};

ExperimentRow test_row(const Options& options, const TrainingCell& cell, ExperimentKind kind,
                       const Readout& head) {
  const Estimate risk =
      esscher::risk(task_of(cell.preset), head, cell.model, cell.length, nodes(options));
  return {.kind = kind,
          .preset = cell.preset,
          .model = cell.model,
          .L = cell.length,
          .mse = 2 * risk.value,  // twice a risk
          .std_error = 2 * risk.std_error};
}

// The Hessian of the risk in (U, r) without the last column of U, which never acts, by central
// differences of the exact gradient.
Matrix hessian(const RiskFunction& risk, const Parametrisation& space, const Vector& theta) {
  const Index n = theta.size(), D = space.token_dim;
  std::vector<Index> acting;
  for (Index i = 0; i < n; ++i) {
    if (i >= D * D || i % D != D - 1) acting.push_back(i);
  }
  const auto gradient = [&](const Vector& at) {
    Readout slope;
    risk(space.readout(at), &slope);
    return space.pull_back(at, slope);
  };
  const auto m = static_cast<Index>(acting.size());
  Matrix out(m, m);
  for (Index i = 0; i < m; ++i) {
    const double h = 1e-4 * std::max(1.0, std::abs(theta(acting[static_cast<std::size_t>(i)])));
    Vector plus = theta, minus = theta;
    plus(acting[static_cast<std::size_t>(i)]) += h;
    minus(acting[static_cast<std::size_t>(i)]) -= h;
    const Vector change = (gradient(plus) - gradient(minus)) / (2 * h);
    for (Index j = 0; j < m; ++j) out(i, j) = change(acting[static_cast<std::size_t>(j)]);
  }
  return (out + out.transpose()) / 2;
}

// What the head predicts on a long prompt, averaged over tasks: w'(S v_x beta' + v_y S alpha) x. The
// real parts of the eigenvalues of that matrix are slopes, all of them 1 for a perfect predictor.
Vector slopes(const LinearRegressionTask& task, const Readout& head) {
  const Index d = task.dim;
  const Matrix product = task.prompt_cov * (head.r.head(d) * head.U.row(d).head(d) +
                                            head.r(d) * head.U.topLeftCorner(d, d));
  Vector real = Eigen::EigenSolver<Matrix>(product, false).eigenvalues().real();
  std::sort(real.data(), real.data() + d);
  return real;
}

// Flow of the exact risk from theta until it is stationary, and what the point is.
ExperimentRow stationary_row(const Options& options, const TrainingCell& cell,
                             const Parametrisation& space, const Vector& theta) {
  const LinearRegressionTask task = task_of(cell.preset);
  const RiskFunction risk = risk_function(task, cell.model, cell.length, nodes(options));
  FlowOptions flow;
  flow.rtol = 1e-6;
  flow.atol = 1e-8;
  flow.stationary = 1e-6;
  flow.t_end = 1e5;
  flow.max_steps = options.pick(40, 1000, 20000);
  flow.times = {0.0};
  const FlowResult result = gradient_flow(risk, space, theta, flow);
  const Readout head = space.readout(result.end().theta);
  const Parametrisation flat{ParameterSpace::UV, space.token_dim, 0, 1.0};
  const Vector at = parameters_of(flat, head);
  Readout slope;
  risk(head, &slope);
  const Vector curvature = eigensystem(hessian(risk, flat, at)).values;
  const Vector real = slopes(task, head);
  ExperimentRow row = test_row(options, cell, ExperimentKind::stationary, head);
  const double top = curvature(curvature.size() - 1);
  row.status = name(result.status);
  row.gradient_norm = slope.norm();
  row.curvature_low = curvature(0);
  row.curvature_high = top;
  row.falling = (curvature.array() < -1e-4 * top).count();
  row.learned = (real.array() > 0.5).count();
  row.slope_low = real(0);
  row.slope_high = real(real.size() - 1);
  row.label_share = head.r(task.dim) * head.r(task.dim) / head.r.squaredNorm();
  return row;
}

std::vector<ExperimentRow> train(const Options& options, const TrainingCell& cell) {
  const LinearRegressionTask task = task_of(cell.preset);
  const Schedule plan = schedule(options);
  const Estimate bayes =
      bayes_risk(task, cell.length, options.pick(500, 4000, 20000), Stream(options.seed).split(30));
  std::vector<ExperimentRow> rows;
  std::vector<Vector> ends;
  Parametrisation space;
  for (int s = 0; s < plan.starts; ++s) {
    TrainConfig config = TrainConfig::authors(cell.model, cell.length);
    config.task = task;
    config.optimizer.learning_rate = plan.learning_rate;
    config.batch = plan.batch;
    config.seed = options.seed + 1 + static_cast<std::uint64_t>(s);
    config.curve_block = plan.steps;
    space = config.space;
    Trainer trainer(config);
    trainer.run(plan.steps);
    rows.push_back(test_row(options, cell, ExperimentKind::start, trainer.heads().at(0)));
    rows.back().start = s + 1;
    rows.back().status = name(trainer.status());
    rows.back().bayes = 2 * bayes.value;
    rows.back().bayes_error = 2 * bayes.std_error;
    ends.push_back(trainer.theta());
  }
  // Of those that did not diverge: the best, the worst, and the one in the middle of the upper half,
  // which is typical of the other basin where about half of the starts end there.
  std::vector<std::pair<double, std::int64_t>> order;
  for (const ExperimentRow& row : rows) {
    if (row.status == name(TrainStatus::running)) order.emplace_back(row.mse, row.start.value());
  }
  if (order.empty()) return rows;
  std::sort(order.begin(), order.end());
  const std::size_t places[] = {0, 3 * (order.size() - 1) / 4, order.size() - 1};
  for (const std::size_t place : places) {
    const std::int64_t start = order[place].second;
    rows.push_back(
        stationary_row(options, cell, space, ends.at(static_cast<std::size_t>(start - 1))));
    rows.back().start = start;
  }
  return rows;
}

// The end of gradient flow from the start of the theorem.
std::vector<ExperimentRow> theorem_row(const Options& options, const TrainingCell& cell) {
  const LinearRegressionTask task = task_of(cell.preset);
  FlowSetup setup;
  setup.task = task;
  setup.space = {ParameterSpace::block, task.token_dim(), 0, 1.0};
  setup.theta0 = parameters_of(
      setup.space, balanced_start(task.dim, kTheoremStart * balanced_start_bound(task)));
  setup.flow.rtol = 1e-6;
  setup.flow.atol = 1e-8;
  setup.flow.stationary = 1e-8;
  setup.flow.t_end = 1e8;
  setup.flow.max_steps = 5000;
  setup.flow.times = {0.0};
  setup.risk = nodes(options);
  const FlowResult flow = gradient_flow(setup, cell.model, cell.length);
  if (flow.status == FlowStatus::failed) throw RuntimeFailure("paper: " + flow.message);
  ExperimentRow row =
      test_row(options, cell, ExperimentKind::theorem, setup.space.readout(flow.end().theta));
  row.status = name(flow.status);
  row.gradient_norm = flow.end().gradient_norm;
  return {row};
}

}  // namespace

// The longest first: threads end together.
Cells<ExperimentRow> experiment_cells(const Options& options) {
  CellList<ExperimentRow> list;
  const auto key = [](const char* what, const TrainingCell& cell) {
    return "experiment/" + std::string(what) + "/" + std::string(name(cell.preset)) + "/" +
           std::string(name(cell.model)) + "/L=" + cell.length.text();
  };
  std::vector<std::int64_t> falling = default_lengths(options);
  std::reverse(falling.begin(), falling.end());
  for (const ExperimentPreset preset : kPresets) {
    for (const ModelKind model : {ModelKind::softmax, ModelKind::linear}) {
      for (const std::int64_t L : falling) {
        const TrainingCell cell{preset, model, L};
        list.add(key("default start", cell), [options, cell] { return train(options, cell); });
      }
      for (const std::int64_t L : flow_lengths(options)) {
        const TrainingCell cell{preset, model, L};
        list.add(key("theorem", cell), [options, cell] { return theorem_row(options, cell); });
      }
    }
    const TrainingCell infinite{preset, ModelKind::linear, Length::infinity()};
    list.add(key("default start", infinite),
             [options, infinite] { return train(options, infinite); });
  }
  return std::move(list).cells();
}

}  // namespace esscher::paper
