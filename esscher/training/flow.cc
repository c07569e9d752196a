#include "esscher/training/flow.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "esscher/base/error.h"

namespace esscher {
namespace {

// Evaluates risk and gradient in theta, and monitors what an exact flow conserves.
class Monitor {
 public:
  Monitor(const FlowField& field, const VectorView& theta0) : field_(field) {
    first_ = previous_ = point(0, theta0);
    if (field.conserved) conserved_ = field.conserved(theta0);
    if (field.scale_balance) balance_ = field.scale_balance(theta0);
  }

  FlowPoint point(double t, const VectorView& theta) const {
    Vector slope(theta.size());
    FlowPoint out{t, theta, 0, 0};
    out.risk = field_.risk(out.theta, slope);
    out.gradient_norm = slope.norm();
    return out;
  }

  // Called once per internal step with the point reached and the energy integral there.
  void visit(const FlowPoint& p, double energy, FlowResult& result) {
    if (conserved_.size() > 0) {
      const double drift = (field_.conserved(p.theta) - conserved_).cwiseAbs().maxCoeff();
      result.conserved_drift = std::max(result.conserved_drift, drift);
    }
    if (field_.scale_balance) {
      const double scale = std::abs(field_.scale_balance(p.theta) - balance_);
      result.scale_drift = std::max(result.scale_drift, scale);
    }
    result.largest_increase = std::max(result.largest_increase, p.risk - previous_.risk);
    result.energy_defect = std::abs(first_.risk - p.risk - energy);
    previous_ = p;
  }

  [[nodiscard]] const FlowPoint& first() const { return first_; }

 private:
  const FlowField& field_;
  FlowPoint first_, previous_;
  Vector conserved_;
  double balance_ = 0;
};

void check(const FlowOptions& o, const VectorView& theta0) {
  const auto positive = [](const char* argument, double x) {
    if (!(x > 0)) throw_argument("gradient_flow", argument, to_text(x), "a number > 0");
  };
  positive("rtol", o.rtol);
  positive("atol", o.atol);
  positive("t_end", o.t_end);
  if (!(o.stationary >= 0)) {
    throw_argument("gradient_flow", "stationary", to_text(o.stationary), "a number >= 0");
  }
  if (!std::is_sorted(o.times.begin(), o.times.end()) || (!o.times.empty() && o.times[0] < 0)) {
    throw_argument("gradient_flow", "times", "an unsorted list", "times >= 0 in rising order");
  }
  check_finite("gradient_flow", "theta0", Matrix(theta0.transpose()));
}

}  // namespace

FlowResult gradient_flow(const FlowField& field, const VectorView& theta0,
                         const FlowOptions& options) {
  check(options, theta0);
  const Index n = theta0.size();
  Monitor monitor(field, theta0);
  FlowResult result;
  result.path.push_back(monitor.first());
  if (monitor.first().gradient_norm <= options.stationary) {
    result.status = FlowStatus::stationary;
    return result;
  }

  // State (theta, E) with E' = |grad R|^2.
  Vector y0(n + 1);
  y0 << theta0, 0.0;
  const auto descent = [&](const VectorView& y, Eigen::Ref<Vector> out) {
    Vector slope(n);
    (void)field.risk(y.head(n), slope);
    out.head(n) = -slope;
    out(n) = slope.squaredNorm();
  };
  Integrator integrator(descent, y0, options.rtol, options.atol, options.stepping);

  auto next = std::upper_bound(options.times.begin(), options.times.end(), 0.0);
  result.status = FlowStatus::max_steps;
  while (integrator.steps() < options.max_steps) {
    if (!integrator.step(options.t_end)) {
      result.status = FlowStatus::failed;
      result.message = integrator.message();
      break;
    }
    const Vector y = integrator.y();
    const FlowPoint here = monitor.point(integrator.t(), y.head(n));
    monitor.visit(here, y(n), result);
    for (; next != options.times.end() && *next < here.t; ++next) {
      result.path.push_back(monitor.point(*next, integrator.at(*next).head(n)));
    }
    const bool still = here.gradient_norm <= options.stationary;
    const bool over = here.t >= options.t_end;
    if (still || over || options.times.empty()) result.path.push_back(here);
    if (still || over) {
      result.status = still ? FlowStatus::stationary : FlowStatus::t_end;
      break;
    }
  }
  if (result.path.back().t < integrator.t()) {
    result.path.push_back(monitor.point(integrator.t(), integrator.y().head(n)));
  }
  result.steps = integrator.steps();
  result.evaluations = integrator.evaluations();
  return result;
}

FlowField flow_field(RiskFunction risk, const Parametrisation& space) {
  return {.risk =
              [risk = std::move(risk), space](const Vector& theta, Vector& gradient) {
                Readout slope;
                const double value = risk(space.readout(theta), &slope);
                gradient = space.pull_back(theta, slope);
                return value;
              },
          .conserved = [space](const VectorView& theta) { return space.conserved(theta); },
          .scale_balance = [space](const VectorView& theta) { return space.scale_balance(theta); }};
}

FlowResult gradient_flow(const RiskFunction& risk, const Parametrisation& space,
                         const VectorView& theta0, const FlowOptions& options) {
  check_dimension("gradient_flow", "theta0", theta0.size(), space.size());
  return gradient_flow(flow_field(risk, space), theta0, options);
}

std::vector<Readout> readouts(const Parametrisation& space, const FlowResult& flow) {
  std::vector<Readout> out;
  for (const FlowPoint& p : flow.path) out.push_back(space.readout(p.theta));
  return out;
}

namespace {

// Heads on the way of the infinite prompt, roughly. Its risk has a closed form, so that this takes
// no time beside a flow over nodes.
std::vector<Readout> heads_on_the_way(const FlowSetup& setup) {
  FlowOptions rough = setup.flow;
  rough.rtol = std::max(rough.rtol, 1e-4);
  rough.atol = std::max(rough.atol, 1e-6);
  rough.stationary = std::max(rough.stationary, 1e-4);
  rough.max_steps = std::min<std::int64_t>(rough.max_steps, 1000);
  rough.times.clear();
  const RiskFunction limit =
      risk_function(setup.task, ModelKind::softmax, Length::infinity(), setup.risk);
  return readouts(setup.space, gradient_flow(limit, setup.space, setup.theta0, rough));
}

}  // namespace

FlowResult gradient_flow(const FlowSetup& setup, ModelKind kind, Length length) {
  const RiskMethod method = choose_risk(setup.task, 1, kind, length, setup.risk.engine).method;
  std::vector<Readout> near;
  if (method == RiskMethod::quadrature) near = heads_on_the_way(setup);
  return gradient_flow(risk_function(setup.task, kind, length, setup.risk, near), setup.space,
                       setup.theta0, setup.flow);
}

}  // namespace esscher
