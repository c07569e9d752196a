// One row of `limit` and `attend`: everything about one query z under one measure.
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "esscher/attention/attention.h"
#include "esscher/base/columns.h"
#include "esscher/config/measure.h"
#include "esscher/json/json.h"
#include "esscher/measure/any_measure.h"

namespace esscher::cli {

// The options of a verb that prints rows.
struct RowRequest {
  bool derivatives = false;
  std::int64_t queries = 8;
};

void add_row_options(const Command& verb, RowRequest& request);

struct RowOptions {
  bool linear = false;       // [attention] kind: which operator "output" is
  bool derivatives = false;  // add the Jacobians
};

struct QueryRow {
  Vector z;              // [d]
  Vector output;         // [dv]
  Vector output_linear;  // [dv]
  double log_mgf = 0;
  double tau2 = 0;                                   // a'C_0 a, the variance of the score under mu
  Vector tilted_mean;                                // [d]
  Matrix tilted_cov;                                 // [d,d]
  std::optional<double> effective_sample_size = {};  // of a prompt
  std::optional<Matrix> jacobian_z = {};             // [dv,d], on request like the others
  std::optional<Matrix> jacobian_U = {};             // [dv,d*d]
  std::optional<Matrix> jacobian_V = {};             // [dv,dv*d]

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("z", row.z, "", "query");
    column("output", row.output, "", "output of the operator");
    column("output_linear", row.output_linear, "", "output of linear attention");
    column("log_mgf", row.log_mgf, "", "log moment generating function at a = U z");
    column("tau2", row.tau2, "", "variance of the score");
    column("tilted_mean", row.tilted_mean, "", "mean of the tilted measure");
    column("tilted_cov", row.tilted_cov, "", "covariance of the tilted measure");
    column("effective_sample_size", row.effective_sample_size, "tokens", "of the softmax weights");
    column("jacobian_z", row.jacobian_z, "", "derivative of the output in z");
    column("jacobian_U", row.jacobian_U, "", "derivative of the output in U");
    column("jacobian_V", row.jacobian_V, "", "derivative of the output in V");
  }
};

QueryRow query_row(const AnyMeasure& mu, const Attention& attention, const VectorView& z,
                   const RowOptions& options);

// The row as an object; what it does not have is left out.
Json query_json(const QueryRow& row);

// The points of [query], or `count` draws of its law from `seed`.
Matrix query_points(const Table& root, Index dim, Index count, std::uint64_t seed);

// What [attention] and [query] ask of a measure in dimension `dim`.
struct AskedRows {
  Attention attention;
  RowOptions options;
  Matrix points;  // [q,d]

  [[nodiscard]] QueryRow row(const AnyMeasure& mu, Index i) const;
  [[nodiscard]] const char* kind() const { return options.linear ? "linear" : "softmax"; }
};

AskedRows asked_rows(const Table& root, Index dim, const RowRequest& request, std::uint64_t seed);

// "[0.5, 1.25, ...]": six digits, at most six entries.
std::string brief_vector(const VectorView& x);

}  // namespace esscher::cli
