// What a Study is made of: the plan and the cells (study.cc), how rows become curves
// (study_curves.cc), and where a curve reaches a tolerance (reach.cc). Internal to these three.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "esscher/concentration/detail/plan.h"
#include "esscher/concentration/study.h"

namespace esscher {

// The part of a study that one engine serves.
struct Study::State {
  Problem problem;
  StudyOptions options;
  QueryPlan plan;
  std::vector<std::string> keys;

  // The average over the two levels as rows, and the covariance of log D across lengths, known with
  // so many degrees of freedom.
  struct Curve {
    std::vector<StudyRow> rows;
    Matrix cov;
    double dof = std::numeric_limits<double>::infinity();
  };
  // The rows of one metric as tables [queries,lengths].
  struct QueryTable {
    Matrix value, error, weights2, bias2, asymptotic;
    std::vector<Matrix> parts;  // weights of the parts of the prompt, one table for each
    Matrix
        prompts;  // [lengths,lengths]: covariance over prompts of the averages over given queries
  };
  // The result of the metrics of this part.
  [[nodiscard]] StudyResult assemble(std::span<const PointRow> rows) const;
  [[nodiscard]] std::vector<PointRow> compute_average(std::size_t i) const;
  [[nodiscard]] std::vector<PointRow> compute_queries(std::size_t i) const;
  [[nodiscard]] std::vector<PointRow> query_rows(Index q) const;
  [[nodiscard]] Curve average_curve(Metric metric, std::span<const PointRow> rows) const;
  [[nodiscard]] QueryTable query_table(Metric metric, std::span<const PointRow> rows) const;
  [[nodiscard]] TwoLevel average_of(const VectorView& values, const VectorView& errors,
                                    const VectorView& independent, const SquareLaw& law) const;
  [[nodiscard]] Curve query_curve(Metric metric, const QueryTable& table) const;
  [[nodiscard]] double frozen(std::int64_t L) const;
  [[nodiscard]] std::string query_flag(const VectorView& errors) const;
  // The largest eigenvalue of the law of tau^2; NaN unless tokens and queries are Gaussian.
  [[nodiscard]] double lambda() const;
  [[nodiscard]] RegimeReport regime() const;
  [[nodiscard]] std::int64_t middle_length() const;
  // Errors of the first metric at the middle length at fresh queries of nu, where the study itself
  // shows no single queries.
  [[nodiscard]] Vector fresh_query_values() const;
};

}  // namespace esscher
