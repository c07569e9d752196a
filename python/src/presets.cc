#include "esscher/config/presets.h"

#include <pybind11/stl.h>

#include "calls.h"
#include "concentration.h"
#include "esscher/base/error.h"
#include "esscher/concentration/study.h"
#include "esscher/config/icl.h"
#include "esscher/config/layer.h"
#include "esscher/config/sweep.h"
#include "esscher/config/tokens.h"
#include "esscher/config/train.h"
#include "esscher/json/rows.h"
#include "esscher/json/training.h"
#include "esscher/paper/preset_claims.h"
#include "esscher/report/page_risk.h"
#include "esscher/report/page_tokens.h"
#include "esscher/report/setting.h"
#include "results.h"
#include "rows.h"

namespace esscher::python {
namespace {

using Assignments = std::vector<std::string>;

py::object native(const ConfigValue& value) {
  if (const auto* table = value.map()) {
    py::dict dict;
    for (const auto& [key, item] : *table) dict[py::str(key)] = native(item);
    return dict;
  }
  if (const auto* items = value.array()) {
    py::list list;
    for (const ConfigValue& item : *items) list.append(native(item));
    return list;
  }
  if (const auto* b = std::get_if<bool>(&value.data)) return py::bool_(*b);
  if (const auto* n = std::get_if<std::int64_t>(&value.data)) return py::int_(*n);
  if (const auto* x = std::get_if<double>(&value.data)) return py::float_(*x);
  return py::str(std::get<std::string>(value.data));
}

py::list all() {
  py::list list;
  for (const Preset& p : presets()) {
    list.append(py::make_tuple(p.name, p.verb, p.title, p.provenance, p.expected, p.toml));
  }
  return list;
}

Config configure(const std::string& name, const Assignments& assignments) {
  Config config = load_preset(name);
  for (const std::string& assignment : assignments) {
    config.set(assignment, "changes: " + assignment);
  }
  config.check_known();
  return config;
}

py::dict tables(const std::string& name, const Assignments& assignments) {
  const Table root = configure(name, assignments).root();
  py::dict dict;
  for (const std::string& key : root.keys()) {
    if (key != "preset") dict[py::str(key)] = native(root.value(key));
  }
  return dict;
}

// A run of a preset is the run that the program makes: its configuration is known when it was read.
Outlet outlet_of(const Config& config, const char* verb, py::object& where,
                 const std::string& more = "") {
  config.check_all_used();
  if (!where.is_none()) {
    where["verb"] = verb;
    where["config"] = config.resolved_toml() + more;
  }
  return Outlet(where);
}

py::object run_flow_preset(const Config& config, std::uint64_t seed, py::object& where) {
  const FlowProblem problem = read_flow_problem(config.root(), seed);
  Outlet outlet = outlet_of(config, "icl flow", where);
  return run_flow(problem, outlet);
}

py::object run_compare_preset(const Config& config, std::uint64_t seed, py::object& where) {
  const CompareProblem problem = read_compare_problem(config.root(), seed);
  Outlet outlet = outlet_of(config, "icl compare", where);
  return compare_out(long_call([&] { return run_compare(problem, outlet); }, outlet));
}

py::object run_train_preset(const Config& config, std::uint64_t seed, py::object& where) {
  const TrainPlan plan = read_train(config.root(), seed);
  Outlet outlet = outlet_of(config, "icl train", where);
  return run_training(plan, outlet);
}

py::object run_concentration_preset(const Config& config, std::uint64_t seed, py::object& where) {
  const Problem problem = read_problem(config.root());
  const StudyOptions sweep = read_sweep(config.root(), seed);
  allow_preset(config.root());
  Outlet outlet = outlet_of(config, "concentration", where);
  return out(long_call([&] { return run_study(problem, sweep, outlet); }, outlet));
}

// The run of the program is that of one model, tested at all lengths.
py::object run_risk_preset(const Config& config, std::uint64_t seed, py::object& where) {
  const LayerProblem problem = read_layer_problem(config.root(), seed);
  Outlet outlet = outlet_of(config, "icl risk", where, "\n[tested]\nmodels = []\n");
  const Cells<RiskRow> cells{{"risk"}, [&](std::size_t) { return layer_risk_rows(problem); }};
  const auto page = [&](const std::vector<RiskRow>& rows) {
    return with_setting(setting_of(problem.task), risk_page(rows));
  };
  return list_of(long_call([&] { return kept_rows(cells, outlet, &risk_document, page); }, outlet));
}

template <class Row>
py::object token_rows(const PublishedTokens& tokens, const Cells<Row>& cells, Outlet& outlet,
                      Page (*page_of)(const std::vector<Row>&)) {
  const auto document = [&](const std::vector<Row>& rows) {
    return Json{{"tokens", name(tokens.kind)}, {"rows", rows_json(rows)}};
  };
  return list_of(long_call([&] { return kept_rows(cells, outlet, document, page_of); }, outlet));
}

py::object run_scaling_preset(const Config& config, py::object& where) {
  const PublishedTokens tokens = read_published_tokens(config.root());
  allow_preset(config.root());
  if (!where.is_none()) where["seed"] = 0;  // nothing is drawn
  Outlet outlet = outlet_of(config, "scaling", where);
  if (tokens.kind == TokenKind::equiangular) {
    return token_rows(tokens, equiangular_cells(tokens), outlet, &equiangular_page);
  }
  return token_rows(tokens, sphere_cells(tokens), outlet, &sphere_page);
}

// The result of the verb the preset is meant for.
py::object run(const std::string& name, const std::string& verb, const Assignments& assignments,
               std::uint64_t seed, py::object where) {
  const Config config = configure(name, assignments);
  if (verb == "icl flow") return run_flow_preset(config, seed, where);
  if (verb == "icl compare") return run_compare_preset(config, seed, where);
  if (verb == "icl risk") return run_risk_preset(config, seed, where);
  if (verb == "scaling") return run_scaling_preset(config, where);
  if (verb == "icl train") return run_train_preset(config, seed, where);
  if (verb == "concentration") return run_concentration_preset(config, seed, where);
  throw CapabilityError("preset " + name + " is for '" + verb +
                        "', which Python does not run; use the program: esscher " + verb +
                        " --preset " + name);
}

}  // namespace

void bind_presets(py::module_& m) {
  m.def("check_preset",
        [](const std::string& name, const Assignments& assignments, bool full, std::uint64_t seed) {
          configure(name, assignments);  // so that a wrong key is called a change, not --set
          const paper::ClaimOptions options{.full = full, .assignments = assignments, .seed = seed};
          return list_of(long_call([&] { return paper::check_preset(name, options); }));
        });
  m.def("presets", &all);
  m.def("preset_config", &tables);
  m.def("run_preset", &run);
}

}  // namespace esscher::python
