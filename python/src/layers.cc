#include <pybind11/stl.h>

#include "arrays.h"
#include "calls.h"
#include "esscher/base/error.h"
#include "esscher/json/optimum.h"
#include "esscher/report/page_optimum.h"
#include "esscher/report/setting.h"
#include "esscher/risk/layer_error.h"
#include "esscher/risk/layer_risk.h"
#include "esscher/task/classification.h"
#include "esscher/task/denoising.h"
#include "esscher/task/linear_family.h"
#include "esscher/task/pool.h"
#include "esscher/task/single_index_task.h"
#include "esscher/training/layer_optimum.h"
#include "estimates.h"
#include "links.h"
#include "outlet.h"
#include "parts.h"
#include "readouts.h"
#include "results.h"
#include "rows.h"
#include "tasks.h"

namespace esscher::python {
namespace {

Matrix matrix_of(const py::dict& given, const char* key) {
  return matrix_in("task", key, given[key]).view();
}

Vector weights_of(const py::dict& given) {
  if (given["weights"].is_none()) return {};
  return vector_in("task", "weights", given["weights"]).view();
}

MixtureMeans means_of(const py::dict& given) {
  MixtureMeans out;
  out.law = parse_enum<MeansLaw>(py::cast<std::string>(given["means_law"]));
  if (out.is_fixed()) {
    out.fixed = matrix_of(given, "means");
    return out;
  }
  out.dim = py::cast<Index>(given["dim"]);
  out.count = py::cast<Index>(given["components"]);
  out.scale = py::cast<double>(given["mean_scale"]);
  return out;
}

ContextTask make_task(const std::string& type, const py::dict& given) {
  switch (parse_enum<TaskType>(type)) {
    case TaskType::denoising:
      return denoising_task({.means = means_of(given),
                             .weights = weights_of(given),
                             .gamma = py::cast<double>(given["gamma"]),
                             .xi = py::cast<double>(given["xi"])});
    case TaskType::classification:
      return classification_task(
          {.means = means_of(given),
           .weights = weights_of(given),
           .cov = matrix_of(given, "cov"),
           .loss = parse_enum<TaskLoss>(py::cast<std::string>(given["loss"]))});
    case TaskType::single_index: {
      SingleIndexTask task;
      task.cov = matrix_of(given, "cov");
      task.link = link_in(given["link"], given["coefficients"], given["kinks"]);
      task.index_law = parse_enum<IndexLaw>(py::cast<std::string>(given["index_law"]));
      task.task_variance = py::cast<double>(given["task_variance"]);
      task.noise_variance = py::cast<double>(given["noise_variance"]);
      task.query_noise = py::cast<bool>(given["query_noise"]);
      return single_index_task(task);
    }
    case TaskType::pool:
      return pool_task({.pool = matrix_of(given, "pool"),
                        .weights = weights_of(given),
                        .cov = matrix_of(given, "cov"),
                        .noise_variance = py::cast<double>(given["noise_variance"]),
                        .query_noise = py::cast<bool>(given["query_noise"])});
    case TaskType::linear:
      return linear_family_task(
          {.task_cov = matrix_of(given, "task_cov"),
           .nonzero = py::cast<Index>(given["nonzero"]),
           .cov = matrix_of(given, "cov"),
           .cov_law = parse_enum<CovarianceLaw>(py::cast<std::string>(given["cov_law"])),
           .scale_deviation = py::cast<double>(given["scale_deviation"]),
           .degrees = py::cast<Index>(given["degrees"]),
           .noise_variance = py::cast<double>(given["noise_variance"]),
           .query_noise = py::cast<bool>(given["query_noise"])});
    case TaskType::regression: break;
  }
  throw_argument("task", "type", type, "another type than regression");
}

py::tuple references(const ContextTask& task, const py::object& length, const py::dict& options) {
  const Length L = length_in("reference_risks", length);
  const RiskOptions how = risk_options_in(options);
  const ReferenceRisks found = long_call([&] { return reference_risks(task, L, how); });
  return py::make_tuple(out(found.bayes), out(found.affine), out(found.linear),
                        std::string(name(found.bayes_by)));
}

// coordinates = (family, parametrisation)
using Coordinates = std::pair<std::string, std::string>;

LayerFlowProblem flow_in(const ContextTask& task, const py::object& W, const py::iterable& heads,
                         const Coordinates& coordinates, const py::dict& options) {
  return {.model = {.task = task,
                    .start = layer_in(W, heads),
                    .family = parse_enum<LayerFamily>(coordinates.first),
                    .factors = {.space = parse_enum<ParameterSpace>(coordinates.second)}},
          .flow = flow_options_in(options),
          .risk = risk_options_in(options)};
}

py::dict flow(const ContextTask& task, const py::object& W, const py::iterable& heads,
              const Coordinates& coordinates, const py::object& length, const py::dict& options,
              const py::object& where) {
  LayerFlowProblem problem = flow_in(task, W, heads, coordinates, options);
  problem.length = length_in("flow", length);
  Outlet outlet(where);
  return run_flow(problem, outlet);
}

py::dict compare(const ContextTask& task, const py::object& W, const py::iterable& heads,
                 const Coordinates& coordinates, const py::iterable& lengths,
                 const py::iterable& eps, const py::dict& options, const py::object& where) {
  LayerCompareProblem problem{.flow = flow_in(task, W, heads, coordinates, options), .lengths = {}};
  for (const py::handle length : lengths) problem.lengths.push_back(length_in("compare", length));
  for (const py::handle e : eps) problem.eps.push_back(py::cast<double>(e));
  Outlet outlet(where);
  return compare_out(long_call([&] { return run_compare(problem, outlet); }, outlet));
}

py::list optimum(const ContextTask& task, const std::vector<std::string>& kinds,
                 const std::tuple<std::string, std::string, Index>& coordinates,
                 const py::object& start, const py::iterable& lengths, int restarts,
                 const py::dict& options, const py::object& where) {
  const auto& [family, parametrisation, key_dim] = coordinates;
  OptimumProblem problem{
      .task = task,
      .kinds = {},
      .family = parse_enum<LayerFamily>(family),
      .factors = {.space = parse_enum<ParameterSpace>(parametrisation), .key_dim = key_dim},
      .lengths = {},
      .restarts = restarts,
      .risk = risk_options_in(options)};
  for (const std::string& kind : kinds) problem.kinds.push_back(parse_enum<ModelKind>(kind));
  if (!start.is_none()) {
    const auto parts = py::cast<py::tuple>(start);
    problem.start = layer_in(parts[0], py::cast<py::iterable>(parts[1]));
    problem.kinds.clear();
    for (const LayerHead& head : problem.start->heads) problem.kinds.push_back(head.kind);
  }
  for (const py::handle length : lengths) problem.lengths.push_back(length_in("optimum", length));
  Outlet outlet(where);
  const auto page = [&](const std::vector<OptimumRow>& rows) {
    return with_setting(setting_of(problem.task), optimum_page(rows));
  };
  return list_of(long_call(
      [&] { return kept_rows(optimum_cells(problem), outlet, &optimum_document, page); }, outlet));
}

py::tuple draw(const ContextTask& task, const Stream& stream, Index n) {
  const ContextNode node = draw_node(task, stream.split(0));
  const Vector target = task.target(node, stream.split(1));
  const Matrix prompt = node.tokens->measure().sample(stream.split(2), n).tokens();
  return py::make_tuple(out(VectorView(node.query)), out(VectorView(target)),
                        out(VectorView(node.target)), out(MatrixView(prompt)));
}

py::array_t<double> posterior_mean(const ContextTask& task, const py::object& prompt,
                                   const py::object& query) {
  if (!task.posterior_mean && !task.evidence) {
    throw CapabilityError(
        "task " + std::string(name(task.type)) +
        (task.fixed_law ? ": every prompt has the same law, which a prediction may know; there is "
                          "no posterior of it"
                        : ": no posterior mean from a finite prompt is known"));
  }
  const Matrix tokens = matrix_in("posterior_mean", "prompt", prompt).view();
  const Vector z = vector_in("posterior_mean", "query", query).view();
  check_dimension("posterior_mean", "prompt", tokens.cols(), task.token_dim);
  check_dimension("posterior_mean", "query", z.size(), task.token_dim);
  if (task.posterior_mean) return out(VectorView(task.posterior_mean(tokens, z)));
  constexpr ChainOptions kLong{.burn = 1000, .keep = 4000};
  const Vector mean = long_call(
      [&] { return chain_mean(task.evidence(tokens, z), task.law_normals, kLong, Stream(0)); });
  return out(VectorView(mean));
}

}  // namespace

void bind_layers(py::module_& m) {
  py::class_<ContextTask>(m, "ContextTask")
      .def(py::init(&make_task))
      .def_property_readonly("type", [](const ContextTask& t) { return std::string(name(t.type)); })
      .def_property_readonly("loss", [](const ContextTask& t) { return std::string(name(t.loss)); })
      .def("_draw", &draw)
      .def("_posterior_mean", &posterior_mean)
      .def_readonly("token_dim", &ContextTask::token_dim)
      .def_readonly("out_dim", &ContextTask::out_dim);
  m.def("layer_risk", [](const ContextTask& task, const py::object& W, const py::iterable& heads,
                         const py::object& length, const py::dict& options) {
    const Layer layer = layer_in(W, heads);
    const Length L = length_in("risk", length);
    const RiskOptions how = risk_options_in(options);
    return out(long_call([&] { return layer_risk(task, layer, L, how); }));
  });
  // (value, gradient) on fixed nodes.
  m.def("layer_risk_gradient",
        [](const ContextTask& task, const py::object& W, const py::iterable& heads,
           const py::object& length, const py::dict& options) {
          const Layer layer = layer_in(W, heads);
          const Length L = length_in("risk", length);
          const RiskOptions how = risk_options_in(options);
          Layer gradient;
          const double value =
              long_call([&] { return layer_risk_function(task, layer, L, how)(layer, &gradient); });
          return py::make_tuple(value, layer_out(gradient));
        });
  m.def("reference_risks", &references);
  m.def("layer_flow", &flow);
  m.def("layer_compare", &compare);
  m.def("layer_optimum", &optimum);
}

}  // namespace esscher::python
