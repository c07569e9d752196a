// The error of a finite prompt at its worst query: E sup over |z| <= R of |T_hat(z) - T(z)|.
//
// Prompts are drawn (direct engine), and the supremum of each is found by branch and bound. The ball
// is covered by cubes of the row space of U. With z_c the point of the ball nearest to the centre of
// a cube, delta its half diagonal, weights omega and covariances at z_c,
//
//   |f(z) - f(z_c)| <= delta (e^{2 delta rho} sqrt(tr V C_hat V' tr U'C_hat U) + lip),  z in the cube
//   rho = max_l |U'(z_l - m_hat)|,   lip >= |V C_a U| for |a| <= |U| R      (measure/covariance_bound.h)
//
// because weights change by at most e^{2 delta rho} in the cube, and projection to the ball brings
// points no further apart. The cube with the largest bound is split until no bound exceeds the
// largest value seen by more than `tolerance` of it. That value is attained: it is the lower end of
// the supremum, and the largest bound left is the upper end. Their mean distance is the resolution,
// which is stated beside the value. The rank of U is at most 3.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "esscher/base/cells.h"
#include "esscher/concentration/problem.h"
#include "esscher/estimate/interval.h"

namespace esscher {

struct SupOptions {
  double radius = 1;
  std::vector<std::int64_t> lengths = {};  // increasing
  std::int64_t replicates = 64;            // prompts
  double tolerance = 0.02;                 // of the supremum
  std::int64_t max_points = 20000;         // queries looked at per prompt and length
  std::uint64_t seed = 0;
};

// One prompt at one length.
struct SupPoint {
  std::int64_t prompt = 0;
  std::int64_t L = 0;
  double lower = 0, upper = 0;
  std::int64_t points = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("prompt", row.prompt, "", "number of the prompt");
    column("L", row.L, "tokens", "length of the prompt");
    column("lower", row.lower, "", "the largest error seen");
    column("upper", row.upper, "", "no query of the ball has a larger error");
    column("points", row.points, "", "queries that were looked at");
  }
};

struct SupRow {
  std::int64_t L = 0;
  double value = 0;
  double std_error = 0;
  Interval ci = {};
  double resolution = 0;
  double points = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("L", row.L, "tokens", "length of the prompt");
    column("value", row.value, "", "mean over prompts of the largest error seen in the ball");
    column("std_error", row.std_error, "", "its standard error over prompts");
    std::vector<double> ci = {row.ci.lo, row.ci.hi};
    column("ci", ci, "", "95 % interval: lower end of value, upper end of value + resolution");
    column("resolution", row.resolution, "",
           "the mean supremum exceeds value by at most this, certified");
    column("points", row.points, "", "queries that were looked at, per prompt");
  }
};

// Throws ArgumentError or CapabilityError for what cannot be served; nothing is computed yet.
Cells<SupPoint> sup_cells(const Problem& problem, const SupOptions& options);
// Rows by length from the points of all prompts.
std::vector<SupRow> sup_rows(const std::vector<SupPoint>& points, const SupOptions& options);

// f(z) = |T_hat(z) - T(z)| of one prompt [n,d].
SupPoint sup_of_prompt(const Problem& problem, const MatrixView& tokens, const SupOptions& options);

}  // namespace esscher
