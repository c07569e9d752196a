#include "arrays.h"
#include "calls.h"
#include "esscher/risk/bayes.h"
#include "esscher/risk/closed_form.h"
#include "esscher/risk/risk.h"
#include "esscher/task/features.h"
#include "esscher/training/flow.h"
#include "esscher/training/start.h"
#include "estimates.h"
#include "readouts.h"
#include "results.h"
#include "tasks.h"

namespace esscher::python {
namespace {

LinearRegressionTask make_task(const py::object& prompt_cov, const py::object& query_cov,
                               double task_variance, double noise_variance, bool query_noise,
                               const std::string& features) {
  LinearRegressionTask task =
      LinearRegressionTask::with_covariance(matrix_in("task", "prompt_cov", prompt_cov).view());
  if (!query_cov.is_none()) task.query_cov = matrix_in("task", "query_cov", query_cov).view();
  task.task_variance = task_variance;
  task.noise_variance = noise_variance;
  task.query_noise = query_noise;
  task.features = parse_enum<Features>(features);
  task.check();
  return task;
}

// (risk, (dU, dr))
py::tuple linear(const LinearRegressionTask& task, const py::object& U, const py::object& r,
                 const py::object& length) {
  const Readout at = readout_in(U, r);
  Readout gradient;
  const double risk = linear_risk(task, at, length_in("linear_risk", length), &gradient);
  return py::make_tuple(risk, out(gradient));
}

py::dict flow(const py::object& task, const py::object& U, const py::object& r,
              const py::object& length, const std::string& kind, const std::string& space_name,
              const py::dict& options, const py::object& where) {
  FlowProblem problem;
  problem.length = length_in("flow", length);
  problem.kind = parse_enum<ModelKind>(kind);
  FlowSetup& setup = problem.setup;
  setup.task = task_in(task);
  setup.space = space_in(space_name, setup.task.token_dim());
  setup.theta0 = parameters_of(setup.space, readout_in(U, r));
  setup.flow = flow_options_in(options);
  setup.risk = risk_options_in(options);
  Outlet outlet(where);
  return run_flow(problem, outlet);
}

}  // namespace

void bind_icl(py::module_& m) {
  py::class_<LinearRegressionTask>(m, "LinearRegressionTask")
      .def(py::init(&make_task))
      .def(py::init<const LinearRegressionTask&>())
      .def_readonly("dim", &LinearRegressionTask::dim)
      .def_readonly("task_variance", &LinearRegressionTask::task_variance)
      .def_readonly("noise_variance", &LinearRegressionTask::noise_variance)
      .def_readonly("query_noise", &LinearRegressionTask::query_noise)
      .def_property_readonly(
          "features", [](const LinearRegressionTask& t) { return std::string(name(t.features)); })
      .def_property_readonly(
          "prompt_cov", [](const LinearRegressionTask& t) { return out(MatrixView(t.prompt_cov)); })
      .def_property_readonly(
          "query_cov", [](const LinearRegressionTask& t) { return out(MatrixView(t.query_cov)); })
      .def("token_covariance",
           [](const LinearRegressionTask& t, const py::object& w) {
             return out(
                 MatrixView(token_covariance(t, vector_in("token_covariance", "w", w).view())));
           })
      .def("_draw", [](const LinearRegressionTask& t, const Stream& stream, Index n) {
        const RegressionSampler sampler(t);
        const RegressionDraw d = sampler.draw(stream.split(0));
        const Matrix prompt = sampler.prompt(d.w, n, stream.split(1));
        return py::make_tuple(out(VectorView(d.w)), out(VectorView(d.x)), d.y,
                              out(MatrixView(prompt)));
      });
  m.def("power_covariance",
        [](Index dim, double rho) { return out(MatrixView(power_covariance(dim, rho))); });
  m.def("linear_risk", &linear);
  m.def("block_optimum", [](const LinearRegressionTask& task, const py::object& length) {
    return out(block_optimum(task, length_in("block_optimum", length)));
  });
  m.def("balanced_start", [](Index d, double alpha) { return out(balanced_start(d, alpha)); });
  m.def("balanced_start_bound", &balanced_start_bound);
  m.def("bayes_risk", [](const LinearRegressionTask& task, const py::object& length,
                         std::int64_t replicates, const Stream& stream) {
    const Length L = length_in("bayes_risk", length);
    return out(long_call([&] { return bayes_risk(task, L, replicates, stream); }));
  });
  m.def("token_dim", [](const py::object& task) { return task_in(task).token_dim(); });
  m.def("flow", &flow);
}

}  // namespace esscher::python
