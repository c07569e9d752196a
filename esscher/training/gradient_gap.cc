#include "esscher/training/gradient_gap.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "esscher/risk/carriers.h"
#include "esscher/risk/closed_form.h"
#include "esscher/risk/query_risk.h"

namespace esscher {
namespace {

constexpr std::uint64_t kGapStream = 3;  // apart from the nodes of flows and risks

Readout gradient(const RiskFunction& risk, const Readout& at) {
  Readout slope;
  risk(at, &slope);
  return slope;
}

Readout difference(Readout a, const Readout& b) {
  a.U -= b.U;
  a.r -= b.r;
  return a;
}

// One scrambling: the normals are made once, nodes are widened for each head.
class Net {
 public:
  Net(const LinearRegressionTask& task, const NodeTables& tables, int log2_nodes,
      const Stream& stream)
      : task_(task),
        tables_(tables),
        pairs_(pair_normals(task, log2_nodes, stream.split(0))),
        queries_(query_normals(task, log2_nodes, stream.split(1))) {}

  // What a finite prompt adds to the risk of the infinite one is the difference itself, so the
  // control variate is complete here.
  [[nodiscard]] Readout gap(const Readout& at) const {
    const ScoreForms forms = score_forms(task_, at);
    Readout finite, limit;
    if (is_blind_to_labels(task_, at)) {
      QueryRisk(task_, tables_, query_nodes(task_, queries_, forms), 1.0)(at, &finite);
    } else {
      SoftmaxRisk(task_, tables_, regression_nodes(task_, pairs_, forms), 1.0)(at, &finite);
    }
    limit_risk(task_, at, &limit);
    return difference(std::move(finite), limit);
  }

  [[nodiscard]] bool is_heavy(const Readout& at) const {
    const ScoreForms forms = score_forms(task_, at);
    const NodeShares shares =
        is_blind_to_labels(task_, at)
            ? QueryRisk(task_, tables_, query_nodes(task_, queries_, forms)).shares(at)
            : SoftmaxRisk(task_, tables_, regression_nodes(task_, pairs_, forms)).shares(at);
    return carriers(shares.excess) < kFewCarriers;
  }

 private:
  LinearRegressionTask task_;
  NodeTables tables_;
  Matrix pairs_, queries_;
};

}  // namespace

Estimate norm_of_mean(const CoMoments& vectors) {
  const Vector& mean = vectors.mean();
  const Matrix cov = vectors.covariance_of_mean();
  const double norm = mean.norm();
  return {.value = std::sqrt(std::max(0.0, mean.squaredNorm() - cov.trace())),
          .std_error = norm > 0 ? std::sqrt(mean.dot(cov * mean)) / norm : 0.0,
          .n = vectors.count(),
          .engine = Engine::quadrature};
}

GradientGap::GradientGap(const FlowSetup& setup, ModelKind kind, Length length)
    : heavy_([](const VectorView&) { return false; }) {
  RiskOptions options = setup.risk;
  const int count = std::max(2, options.scramblings);
  const auto in_theta = [space = setup.space](auto gap) {
    return [space, gap](const VectorView& theta) {
      return space.pull_back(theta, gap(space.readout(theta)));
    };
  };
  const RiskMethod method = choose_risk(setup.task, 1, kind, length, options.engine).method;
  if (method == RiskMethod::quadrature) {
    const NodeTables tables(length.count());
    for (int k = 0; k < count; ++k) {
      const auto net = std::make_shared<const Net>(
          setup.task.regression(), tables, options.log2_nodes,
          options.stream.split(kGapStream).split(static_cast<std::uint64_t>(k)));
      repetitions_.push_back(in_theta([net](const Readout& at) { return net->gap(at); }));
      if (k == 0) {
        heavy_ = [net, space = setup.space](const VectorView& theta) {
          return net->is_heavy(space.readout(theta));
        };
      }
    }
    return;
  }
  const auto add = [&] {
    repetitions_.push_back(in_theta(
        [finite = risk_function(setup.task, kind, length, options),
         limit = risk_function(setup.task, ModelKind::softmax, Length::infinity(), options)](
            const Readout& at) { return difference(gradient(finite, at), gradient(limit, at)); }));
  };
  if (method == RiskMethod::closed_form) {
    engine_ = Engine::exact;
    add();
    return;
  }
  // The same draws at L and at infinity, others in each batch.
  options.draws = std::max<std::int64_t>(2, options.draws / count);
  for (int k = 0; k < count; ++k) {
    options.stream = setup.risk.stream.split(kGapStream).split(static_cast<std::uint64_t>(k));
    add();
  }
}

GradientGap::GradientGap(const LayerModel& model, Length length, const RiskOptions& options)
    : heavy_([](const VectorView&) { return false; }) {
  const bool drawn = choose_layer_risk(model.task, model.start, length, options.engine).method ==
                     RiskMethod::draws;
  // At L = infinity the gap is 0 whatever the nodes are.
  const bool one = length.is_infinite() || (has_lattice(model.task) && !drawn);
  const int count = one ? 1 : std::max(2, options.scramblings);
  for (int k = 0; k < count; ++k) {
    RiskOptions own = options;
    own.stream = options.stream.split(kGapStream).split(static_cast<std::uint64_t>(k));
    own.draws = std::max<std::int64_t>(2, options.draws / count);
    const auto risk = [&](Length L) {
      return layer_objective(model.task, model.map(), L,
                             shared_nodes(model.task, model.start, L, own));
    };
    repetitions_.push_back(
        [finite = risk(length), limit = risk(Length::infinity())](const VectorView& phi) {
          Vector at_length, at_infinity;
          (void)finite(phi, at_length);
          (void)limit(phi, at_infinity);
          return Vector(at_length - at_infinity);
        });
  }
}

Estimate GradientGap::operator()(const VectorView& theta) const {
  CoMoments gaps;
  for (const Repetition& gap : repetitions_) gaps.add(gap(theta));
  if (repetitions_.size() == 1) return {gaps.mean().norm(), 0, 0, engine_};
  Estimate out = norm_of_mean(gaps);
  out.heavy = heavy_(theta);
  return out;
}

}  // namespace esscher
