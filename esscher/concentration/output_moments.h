// What self-attention does to the law of the tokens [Boh25]. The n tokens of a prompt attend to the
// prompt, and the mean and covariance of their outputs are compared with those of the limit:
//
//   y_i = T[mu_hat_n](z_i),   m_n = mean of the y_i,   S_n = sum (y_i - m_n)(y_i - m_n)'/n
//   value = E |m_n - m|_2  or  E |S_n - S|_F
//
// For tokens N(m0, G) the limit is affine, T(z) = V m0 + B z with B = V G U, so that m = V m0 + B m0
// and S = B G B'. Prompts are drawn (direct engine), a fresh one at every length. The horizon of the
// source is H = |G^{1/2} U G^{1/2}|_2.
#pragma once

#include <cstdint>
#include <vector>

#include "esscher/base/cells.h"
#include "esscher/base/enum_names.h"
#include "esscher/concentration/problem.h"
#include "esscher/estimate/rate.h"

namespace esscher {

enum class Moment { mean, covariance };

constexpr auto enum_names(Moment) {
  return EnumNames<Moment, 2>{"moment",
                              {{{Moment::mean, "mean"}, {Moment::covariance, "covariance"}}}};
}

struct MomentOptions {
  std::vector<std::int64_t> lengths = {};  // increasing
  std::int64_t replicates = 16;            // prompts at each length, >= 2
  std::uint64_t seed = 0;
};

// One prompt.
struct MomentPoint {
  std::int64_t L = 0;
  std::int64_t prompt = 0;
  double mean = 0;
  double covariance = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("L", row.L, "tokens", "length of the prompt");
    column("prompt", row.prompt, "", "number of the prompt");
    column("mean", row.mean, "", "distance of the mean of the outputs from its limit");
    column("covariance", row.covariance, "", "the same of their covariance, in the Frobenius norm");
  }
};

struct MomentRow {
  std::int64_t L = 0;
  Moment moment = Moment::mean;
  double value = 0;
  double std_error = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("L", row.L, "tokens", "length of the prompt");
    column("moment", row.moment, "", "mean or covariance of the outputs");
    column("value", row.value, "", "mean distance from its limit");
    column("std_error", row.std_error, "", "its standard error over prompts");
  }
};

struct MomentFit {
  Moment moment = Moment::mean;
  double slope = 0;
  double std_error = 0;
  Interval ci = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("moment", row.moment, "", "mean or covariance of the outputs");
    column("slope", row.slope, "", "slope of log value over log L");
    column("std_error", row.std_error, "", "its standard error");
    std::vector<double> ci = {row.ci.lo, row.ci.hi};
    column("ci", ci, "", "95 % interval of the slope: lower end, upper end");
    if constexpr (!std::is_const_v<Row>) {
      if (ci.size() == 2) row.ci = {ci[0], ci[1]};
    }
  }
};

struct MomentResult {
  double horizon = 0;
  std::vector<MomentRow> rows;  // moment by moment, lengths increasing
  std::vector<MomentFit> fits;  // empty for fewer than three lengths
};

// Throws ArgumentError for the options and CapabilityError unless tokens are Gaussian; nothing is
// computed yet. Queries of the problem are not read.
Cells<MomentPoint> moment_cells(const Problem& problem, const MomentOptions& options);
MomentResult moment_result(const Problem& problem, const MomentOptions& options,
                           const std::vector<MomentPoint>& points);
// Both, here.
MomentResult output_moments(const Problem& problem, const MomentOptions& options);

}  // namespace esscher
