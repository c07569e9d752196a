#include "prompt.h"

#include <vector>

#include "arrays.h"
#include "calls.h"
#include "esscher/base/error.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/prompt/averages.h"
#include "esscher/prompt/errors.h"
#include "esscher/prompt/exact_mixture.h"
#include "esscher/prompt/exact_prompt.h"
#include "esscher/universal/universal.h"
#include "estimates.h"
#include "python_measure.h"

namespace esscher::python {
namespace {

py::tuple universal_values(std::int64_t L, double tau) {
  const Universal u = without_gil([&] { return universal(L, tau); });
  return py::make_tuple(u.M1, u.M2c, u.H, u.M1_ratio, u.M2c_ratio, u.error);
}

// -- What a prompt is made of

std::vector<double> log_weights_in(const char* name, const py::object& values) {
  if (values.is_none()) return {};
  const VectorIn in = vector_in("Prompt", name, values);
  return {in.view().begin(), in.view().end()};
}

PromptGroup group_in(const py::tuple& given) {
  PromptGroup group{.mu = measure_in("Prompt", given[0])};
  if (!given[1].is_none()) group.count = py::cast<std::int64_t>(given[1]);
  group.share = py::cast<double>(given[2]);
  group.bias = py::cast<double>(given[3]);
  group.name = py::cast<std::string>(given[4]);
  return group;
}

Prompt make_prompt(const py::list& groups, const py::object& given, bool include_query,
                   const py::object& sink_logits, const std::string& kind, double slope,
                   std::int64_t width, const py::object& values) {
  Prompt prompt;
  for (const py::handle group : groups) {
    prompt.groups.push_back(group_in(py::cast<py::tuple>(group)));
  }
  if (!given.is_none()) prompt.given = matrix_in("Prompt", "given", given).view();
  prompt.include_query = include_query;
  prompt.sink_logits = log_weights_in("sink_logits", sink_logits);
  prompt.bias = {.kind = parse_enum<BiasKind>(kind),
                 .slope = slope,
                 .width = width,
                 .values = log_weights_in("values", values)};
  check_prompt("Prompt", prompt);
  return prompt;
}

py::list part_names_list(const Prompt& prompt) {
  py::list list;
  for (const std::string& name : part_names(prompt)) list.append(name);
  return list;
}

py::list counts_of(const Prompt& prompt, std::int64_t L) {
  py::list list;
  for (const std::int64_t n : group_counts(prompt, L)) list.append(n);
  return list;
}

// -- What it does

py::array expected(const py::object& tokens, const Attention& T, const py::object& z,
                   const py::object& length) {
  const Prompt prompt = prompt_in("expected_output", tokens);
  const VectorIn query = vector_in("expected_output", "z", z);
  const Length L = length_in("expected_output", length);
  const Vector value = long_call([&] {
    if (L.is_infinite()) {
      const std::optional<AnyMeasure> limit = limit_measure(prompt);
      if (limit) return Vector(T(*limit, query.view()));
      return ExactPrompt(prompt, T, query.view()).expected_output(L);
    }
    return prompt_averages(prompt, T, query.view(), L.count(), {.engine = Engine::exact}).output;
  });
  return out(VectorView(value));
}

py::tuple error_of(const std::string& engine, const std::string& metric, const py::object& tokens,
                   const Attention& T, const py::object& z, const py::object& length,
                   std::int64_t replicates, const Stream& stream) {
  const Prompt prompt = prompt_in("mean_square_error", tokens);
  const VectorIn query = vector_in("mean_square_error", "z", z);
  const Length L = length_in("mean_square_error", length);
  const PromptOptions options{
      .engine = parse_enum<Engine>(engine), .replicates = replicates, .stream = stream};
  const auto which = parse_enum<Metric>(metric);
  return out(long_call([&] {
    // A measure alone has kernels of its own.
    if (prompt.is_plain()) {
      return mean_square_error(which, prompt.groups.front().mu, T, query.view(), L, options);
    }
    return mean_square_error(which, prompt, T, query.view(), L, options);
  }));
}

// The number of tokens; that of the counted ones unless given.
std::int64_t tokens_of(const Prompt& prompt, const py::object& length) {
  if (length.is_none()) {
    for (const PromptGroup& group : prompt.groups) {
      if (group.count) continue;
      throw_argument("attend", "length", "None",
                     "the number of tokens, because " + group.label() + " has a share of them");
    }
    return prompt.fixed_tokens();
  }
  const Length L = length_in("attend", length);
  if (L.is_infinite()) {
    throw_argument("attend", "length", "inf", "a number; expected_output gives the limit");
  }
  return L.count();
}

py::tuple attended(const std::string& engine, const py::object& tokens, const Attention& T,
                   const py::object& z, const py::object& length, std::int64_t replicates,
                   const Stream& stream) {
  const Prompt prompt = prompt_in("attend", tokens);
  const VectorIn query = vector_in("attend", "z", z);
  const std::int64_t L = tokens_of(prompt, length);
  const PromptOptions options{
      .engine = parse_enum<Engine>(engine), .replicates = replicates, .stream = stream};
  const PromptAverages found =
      long_call([&] { return prompt_averages(prompt, T, query.view(), L, options); });
  py::dict weights;
  const std::vector<std::string> names = part_names(prompt);
  for (std::size_t k = 0; k < names.size(); ++k) {
    const py::str name(names[k]);
    const double before = weights.contains(name) ? py::cast<double>(weights[name]) : 0;
    weights[name] = before + found.weights[static_cast<Index>(k)];
  }
  return py::make_tuple(L, out(VectorView(found.output)), out(VectorView(found.output_error)),
                        found.variance, 1 / found.weights2, weights,
                        std::string(name(found.engine)));
}

// Functions of the scores; the weight of one more token of the score `needle`.
py::tuple score_functions(const py::object& tokens, const Attention& T, const py::object& z,
                          const py::object& length, const py::object& needle) {
  const Prompt prompt = prompt_in("universal", tokens);
  const VectorIn query = vector_in("universal", "z", z);
  const Length L = length_in("universal", length);
  if (L.is_infinite() && no_limit_reason(prompt).empty()) {
    throw_argument("universal", "L", "inf", "a number, where the prompt has a limit");
  }
  const auto score = needle.is_none() ? std::nullopt : std::optional(py::cast<double>(needle));
  ScoreFunctions found;
  std::optional<double> weight;
  run_interruptible([&] {
    found = ExactPrompt(prompt, T, query.view()).score_functions(L);
    if (!score) return;
    Prompt with = prompt;
    with.sink_logits.push_back(*score);
    const Vector weights = ExactPrompt(with, T, query.view()).weights(L);
    weight = weights[weights.size() - 1];
  });
  return py::make_tuple(found.H, found.M1, found.M2c, found.free_energy, found.entropy,
                        weight ? py::object(py::float_(*weight)) : py::none(), found.error);
}

}  // namespace

Prompt prompt_in(const char* where, py::handle value) {
  if (py::isinstance<Prompt>(value)) return py::cast<Prompt>(value);
  return Prompt::plain(measure_in(where, value));
}

AnyMeasure limit_in(const char* where, py::handle value) {
  if (!py::isinstance<Prompt>(value)) return measure_in(where, value);
  const auto prompt = py::cast<Prompt>(value);
  if (std::optional<AnyMeasure> limit = limit_measure(prompt)) return *limit;
  throw CapabilityError(std::string(where) + ": the prompt has no limit, because " +
                        no_limit_reason(prompt) +
                        "; expected_output(prompt, attention, z, inf) gives where it saturates");
}

void bind_prompt(py::module_& m) {
  py::class_<Prompt>(m, "Prompt")
      .def(py::init<const Prompt&>())
      .def_property_readonly("dim", &Prompt::dim)
      .def_property_readonly("fixed_tokens", &Prompt::fixed_tokens)
      .def_property_readonly("names", &part_names_list)
      .def("_counts", &counts_of)
      .def("_no_limit", &no_limit_reason);
  m.def("prompt", &make_prompt);
  m.def("attend", &attended);
  m.def("score_functions", &score_functions);
  m.def("universal", &universal_values);
  m.def("expected_output", &expected);
  m.def("mean_square_error", &error_of);
}

}  // namespace esscher::python
