#include "esscher/paper/detail/preset_subject.h"

#include <cmath>
#include <limits>
#include <utility>

#include "esscher/config/icl.h"
#include "esscher/config/presets.h"
#include "esscher/config/train.h"

namespace esscher::paper {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Config Subject::config(const Changes& more) const {
  Config config = load_preset(name_);
  for (const std::string& change : options_.assignments) config.set(change);
  for (const std::string& change : more) config.set(change);
  config.check_known();
  return config;
}

FlowRecord Subject::flow(const Changes& more) const {
  const Config changed = config(more);
  const FlowProblem problem = read_flow_problem(changed.root(), options_.seed);
  return assemble_flow(compute_here(flow_cells(problem)));
}

LinearRegressionTask Subject::task(const Changes& more) const {
  return read_task(config(more).root());
}

Length Subject::length() const { return read_length(config().root()); }

Subject::Trained Subject::trained(std::int64_t steps, Changes more) const {
  if (!options_.full) more.push_back("train.steps=" + std::to_string(steps));
  const TrainPlan plan = read_train(config(more).root(), options_.seed);
  Trainer trainer(plan.config);
  trainer.run(plan.steps);
  const std::vector<Readout> heads = trainer.heads();
  return {heads, risk_of(heads, more)};
}

Estimate Subject::risk_of(const std::vector<Readout>& heads, const Changes& more) const {
  const TrainConfig trained = read_train(config(more).root(), options_.seed).config;
  RiskOptions options = trained.risk;
  options.draws = 20000;
  return risk(trained.task, heads, trained.model, trained.length, options);
}

void Subject::equal(std::string claim, double found, double expected, double tolerance) {
  add(std::move(claim), found, "=", expected, tolerance, std::abs(found - expected) <= tolerance);
}

void Subject::below(std::string claim, double found, double expected) {
  add(std::move(claim), found, "<", expected, 0, found < expected);
}

void Subject::above(std::string claim, double found, double expected) {
  add(std::move(claim), found, ">", expected, 0, found > expected);
}

void Subject::no_number(std::string claim) {
  add(std::move(claim), kNone, "", kNone, 0, false);
  rows_.back().verdict = ClaimVerdict::no_number;
}

void Subject::add(std::string claim, double found, const char* relation, double expected,
                  double tolerance, bool holds) {
  rows_.push_back({.preset = std::string(name_),
                   .claim = std::move(claim),
                   .found = found,
                   .expected = expected,
                   .relation = relation,
                   .tolerance = tolerance,
                   .verdict = holds ? ClaimVerdict::holds : ClaimVerdict::fails});
}

}  // namespace esscher::paper
