#include "concentration.h"

#include "arrays.h"
#include "calls.h"
#include "esscher/concentration/constant.h"
#include "esscher/concentration/length.h"
#include "esscher/concentration/output_moments.h"
#include "esscher/concentration/sup_error.h"
#include "esscher/json/concentration.h"
#include "esscher/report/page_concentration.h"
#include "esscher/report/setting.h"
#include "prompt.h"
#include "python_measure.h"
#include "rows.h"

namespace esscher::python {
namespace {

// Queries are a law or points [n,d]; an array means points.
Problem problem_in(const py::object& tokens, const Attention& T, const py::object& queries) {
  Problem problem = py::isinstance<Prompt>(tokens)
                        ? prompt_problem(py::cast<Prompt>(tokens), T)
                        : Problem{measure_in("concentration", tokens), T};
  if (py::isinstance<AnyMeasure>(queries) || py::hasattr(queries, "log_mgf")) {
    problem.nu = measure_in("concentration", queries);
  } else {
    problem.points = points_in("concentration", "queries", queries).view();
  }
  return problem;
}

// Rows with the expected weight of every part, as the program prints them.
py::list rows_out(const StudyResult& result) {
  py::list rows = list_of(result.rows);
  if (result.parts.empty()) return rows;
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    py::list weights;
    for (std::size_t k = 0; k < result.parts.size(); ++k) {
      py::dict one;
      one["group"] = result.parts[k];
      one["mean"] = result.rows[i].weights[static_cast<Index>(k)];
      weights.append(one);
    }
    rows[i]["weights"] = weights;
  }
  return rows;
}

std::vector<std::int64_t> lengths_in(const py::iterable& values) {
  std::vector<std::int64_t> lengths;
  for (const py::handle value : values) {
    lengths.push_back(length_in("concentration", value).count());
  }
  return lengths;
}

py::object concentration(const py::object& measure, const Attention& T, const py::object& queries,
                         const py::iterable& lengths, const py::iterable& metrics,
                         const std::string& engine, std::int64_t query_count,
                         std::int64_t replicates, std::uint64_t seed, const py::object& where) {
  const Problem problem = problem_in(measure, T, queries);
  StudyOptions options;
  options.lengths = lengths_in(lengths);
  options.metrics.clear();
  for (const py::handle metric : metrics) {
    options.metrics.push_back(parse_enum<Metric>(py::cast<std::string>(metric)));
  }
  options.engine = parse_enum<Engine>(engine);
  options.queries = query_count;
  options.replicates = replicates;
  options.seed = seed;
  Outlet outlet(where);
  return out(long_call([&] { return run_study(problem, options, outlet); }, outlet));
}

py::object length(const py::object& measure, const Attention& T, const py::object& queries,
                  double eps, const std::string& metric, bool relative,
                  std::optional<double> quantile, const std::string& engine,
                  std::int64_t query_count, std::int64_t replicates, std::uint64_t seed) {
  const Problem problem = problem_in(measure, T, queries);
  LengthOptions options;
  options.eps = eps;
  options.metric = parse_enum<Metric>(metric);
  options.relative = relative;
  options.quantile = quantile;
  options.engine = parse_enum<Engine>(engine);
  options.queries = query_count;
  options.replicates = replicates;
  options.seed = seed;
  const LengthAnswer answer = long_call([&] { return shortest_length(problem, options); });
  py::dict dict = dict_of(answer);
  dict["bracket"] = py::none();
  if (answer.bracket_hi > 0) {
    dict["bracket"] = py::make_tuple(answer.bracket_lo, answer.bracket_hi);
  }
  return dict;
}

double constant(const std::string& metric, const py::object& measure, const Attention& T,
                const py::object& z) {
  const Prompt prompt = prompt_in("asymptotic_constant", measure);
  const VectorIn query = vector_in("asymptotic_constant", "z", z);
  return long_call(
      [&] { return asymptotic_constant(parse_enum<Metric>(metric), prompt, T, query.view()); });
}

py::dict moments(const py::object& measure, const Attention& T, std::vector<std::int64_t> lengths,
                 std::int64_t replicates, std::uint64_t seed, const py::object& where) {
  const Problem problem{.mu = measure_in("output_moments", measure), .attention = T};
  const MomentOptions options{
      .lengths = std::move(lengths), .replicates = replicates, .seed = seed};
  Outlet outlet(where);
  const MomentResult found = long_call(
      [&] { return moment_result(problem, options, outlet.rows(moment_cells(problem, options))); },
      outlet);
  py::dict dict;
  dict["rows"] = list_of(found.rows);
  dict["fits"] = list_of(found.fits);
  dict["horizon"] = found.horizon;
  return dict;
}

py::list sup(const py::object& measure, const Attention& T, double radius,
             std::vector<std::int64_t> lengths, std::int64_t replicates, double tolerance,
             std::int64_t max_points, std::uint64_t seed, const py::object& where) {
  const Problem problem{.mu = measure_in("sup_error", measure), .attention = T};
  const SupOptions options{.radius = radius,
                           .lengths = std::move(lengths),
                           .replicates = replicates,
                           .tolerance = tolerance,
                           .max_points = max_points,
                           .seed = seed};
  Outlet outlet(where);
  return list_of(long_call(
      [&] { return sup_rows(outlet.rows(sup_cells(problem, options)), options); }, outlet));
}

}  // namespace

StudyResult run_study(const Problem& problem, const StudyOptions& options, Outlet& outlet) {
  const Study study(problem, options);
  StudyResult result = study.assemble(outlet.rows(study.cells()));
  outlet.keep_document("result", [&] { return to_json(result); });
  outlet.keep(
      [&] { return with_setting(setting_of(problem), concentration_page(result, {}, {})); });
  outlet.close();
  return result;
}

py::dict out(const StudyResult& result) {
  const RegimeReport& regime = result.regime;
  py::dict constants, regime_out, queries, dict;
  for (const StudyRow& row : result.rows) {
    const py::str metric{std::string(name(row.metric))};
    if (constants.contains(metric)) continue;
    constants[metric] = regime.constants.at(constants.size());
  }
  regime_out["regime"] = std::string(name(regime.regime));
  regime_out["lambda"] = regime.lambda;
  regime_out["gamma"] = regime.gamma;
  regime_out["constant"] = regime.constants.at(0);
  regime_out["constants"] = constants;
  if (regime.kappa) regime_out["kappa"] = *regime.kappa;
  regime_out["text"] = regime.text;
  queries["L"] = result.query_length;
  queries["values"] = out(VectorView(result.query_values));
  dict["how"] = result.how;
  dict["rows"] = rows_out(result);
  dict["fits"] = list_of(result.fits);
  dict["regime"] = regime_out;
  dict["queries"] = queries;
  return dict;
}

void bind_concentration(py::module_& m) {
  m.def("concentration", &concentration);
  m.def("shortest_length", [](const py::object& measure, const Attention& T,
                              const py::object& queries, double eps, const std::string& metric,
                              bool relative, const py::object& quantile, const std::string& engine,
                              std::int64_t count, std::int64_t replicates, std::uint64_t seed) {
    const auto q = quantile.is_none() ? std::nullopt : std::optional(py::cast<double>(quantile));
    return length(measure, T, queries, eps, metric, relative, q, engine, count, replicates, seed);
  });
  m.def("output_moments", &moments);
  m.def("sup_error", &sup);
  m.def("asymptotic_constant", &constant);
  m.def("predicted_exponent", &predicted_exponent);
}

}  // namespace esscher::python
