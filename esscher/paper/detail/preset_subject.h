// A preset whose claims are being checked: its configuration with changes, what it computes, and the
// claims found so far. The checks themselves are in preset_claims*.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "esscher/base/estimate.h"
#include "esscher/base/length.h"
#include "esscher/config/table.h"
#include "esscher/paper/preset_claims.h"
#include "esscher/task/regression.h"
#include "esscher/training/flow_rows.h"

namespace esscher::paper {

class Subject {
 public:
  Subject(std::string_view name, const ClaimOptions& options) : name_(name), options_(options) {}

  using Changes = std::vector<std::string>;  // as of --set, after those of the options
  [[nodiscard]] Config config(const Changes& more = {}) const;
  [[nodiscard]] FlowRecord flow(const Changes& more = {}) const;
  [[nodiscard]] LinearRegressionTask task(const Changes& more = {}) const;
  [[nodiscard]] Length length() const;
  // The heads that training ends with and their risk; `steps` of the short version.
  struct Trained {
    std::vector<Readout> heads;
    Estimate risk;
  };
  [[nodiscard]] Trained trained(std::int64_t steps, Changes more = {}) const;
  // The risk of heads of the preset's kind, on the draws that judge trained ones.
  [[nodiscard]] Estimate risk_of(const std::vector<Readout>& heads, const Changes& more = {}) const;
  [[nodiscard]] bool is_full() const { return options_.full; }
  [[nodiscard]] std::uint64_t seed() const { return options_.seed; }

  void equal(std::string claim, double found, double expected, double tolerance);
  void below(std::string claim, double found, double expected);
  void above(std::string claim, double found, double expected);
  void no_number(std::string claim);
  [[nodiscard]] std::vector<ClaimRow> rows() && { return std::move(rows_); }

 private:
  void add(std::string claim, double found, const char* relation, double expected, double tolerance,
           bool holds);

  std::string_view name_;
  const ClaimOptions& options_;
  std::vector<ClaimRow> rows_;
};

// Checks of sources whose numbers are compared (preset_claims_published.cc).
void audit_suite(Subject& subject);
void bohbot_moments(Subject& subject);
void proportional_limit(Subject& subject);

// Checks of tasks beyond regression (preset_claims_tasks.cc).
void task_pools(Subject& subject);
void sign_labels(Subject& subject);
void hermite_labels(Subject& subject);
void classified(Subject& subject);
void denoised_by_one(Subject& subject);
void denoised_by_two(Subject& subject);
void denoised_with_residual(Subject& subject);
void denoised_subspace(Subject& subject);
void denoised_sphere(Subject& subject);
void denoised_clusters(Subject& subject);

// Checks of token laws under growing scores (preset_claims_scaling.cc).
void equiangular_scale(Subject& subject);
void sphere_scale_is_critical(Subject& subject);

}  // namespace esscher::paper
