#include "esscher/config/sweep.h"

#include <optional>

#include "esscher/base/error.h"
#include "esscher/base/length_grid.h"
#include "esscher/config/measure.h"
#include "esscher/config/prompt.h"
#include "esscher/measure/gaussian.h"

namespace esscher {
namespace {

constexpr double kLongest = 1e15;  // every integer up to here is a double

std::vector<std::int64_t> read_lengths(const Table& sweep) {
  if (sweep.has("lengths") && sweep.value("lengths").array() != nullptr) {
    auto lengths = sweep.integers("lengths", Range::between(1, kLongest));
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (i > 0 && lengths[i] <= lengths[i - 1]) sweep.fail("lengths", "increasing lengths");
    }
    if (lengths.empty()) sweep.fail("lengths", "at least one length");
    return lengths;
  }
  if (sweep.has("lengths") && sweep.value("lengths").map() == nullptr) {
    sweep.fail("lengths", "lengths [10, 100] or a grid {from=10, to=1e6, per_decade=4}");
  }
  return read_length_grid(sweep.table_or_empty("lengths"));
}

Problem plain_problem(const Table& root) {
  AnyMeasure mu = read_measure(root.table("measure"));
  const Index d = mu.dim();
  return {std::move(mu), read_attention(root, d)};
}

Problem problem_of(const Table& root, Prompt prompt) {
  const Index d = prompt.dim();
  try {
    return prompt_problem(std::move(prompt), read_attention(root, d));
  } catch (const ArgumentError& error) {
    root.table("prompt").fail_table(error.what());
  }
}

}  // namespace

std::vector<std::int64_t> read_length_grid(const Table& grid) {
  const std::int64_t from = grid.integer_or("from", 10, Range::between(1, kLongest));
  const std::int64_t to = grid.integer_or("to", 1000000, Range::between(1, kLongest));
  const double per_decade = grid.number_or("per_decade", 4, Range::between(0.1, 100));
  if (to < from) grid.fail("to", "a length >= " + grid.path("from"));
  return length_grid(from, to, per_decade);
}

Engine read_engine(const Table& sweep) {
  return parse_enum<Engine>(
      sweep.choice_or("engine", {"auto", "exact", "sampled", "direct"}, "auto"));
}

StudyOptions read_sweep(const Table& root, std::uint64_t seed) {
  const Table sweep = root.table_or_empty("sweep");
  StudyOptions options;
  options.seed = seed;
  options.lengths = read_lengths(sweep);
  options.engine = read_engine(sweep);
  options.queries = sweep.integer_or("queries", options.queries, Range::between(2, 1e7));
  options.replicates = sweep.integer_or("replicates", options.replicates, Range::between(1, 1e7));
  if (sweep.has("metrics")) {
    options.metrics.clear();
    for (const std::string& text : sweep.texts("metrics")) {
      try {
        options.metrics.push_back(parse_enum<Metric>(text));
      } catch (const ArgumentError&) {
        sweep.fail("metrics", "a list of output, grad_v, grad_u, grad_k, grad_q");
      }
    }
    if (options.metrics.empty()) sweep.fail("metrics", "at least one metric");
  } else if (const std::optional<Prompt> prompt = read_prompt(root);
             prompt && !no_limit_reason(*prompt).empty()) {
    options.metrics = {Metric::output, Metric::grad_v};  // a saturation value has no covariance
  }
  return options;
}

Problem read_problem(const Table& root) {
  std::optional<Prompt> prompt = read_prompt(root);
  Problem problem = prompt ? problem_of(root, *std::move(prompt)) : plain_problem(root);
  if (attention_is_linear(root)) {
    throw ConfigError(
        "attention.kind = \"linear\": concentration is about softmax attention; the linear one has "
        "a closed form in `esscher limit`");
  }
  if (root.has("query")) {
    Query query = read_query(root, problem.mu.dim());
    problem.points = std::move(query.points);
    problem.nu = std::move(query.law);
  } else {
    const Index dim = problem.mu.dim();
    problem.nu = Gaussian(Matrix::Identity(dim, dim));
  }
  return problem;
}

}  // namespace esscher
