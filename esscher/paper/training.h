// What the sections on training share: the regression task, its flow from the paper's balanced
// start, and twin flows as rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "esscher/paper/section.h"
#include "esscher/training/twins.h"

namespace esscher::paper {

// d = 3 (tiny: 2), covariance 0.5^|i-j|, s2 = 1, no noise: the setting of Theorem 5.1.
LinearRegressionTask regression(const Options& options);

// Gradient flow in `space` (block or UV) from U = alpha [[I/sqrt d, 0], [0, 0]], v_y = alpha, with
// alpha half of the largest the theorem allows.
TwinSetup twin_setup(const Options& options, const LinearRegressionTask& task,
                     ParameterSpace space);
double start_alpha(const LinearRegressionTask& task);

// One flow beside the reference: {"kind":"twin","setting","model","L","status","risk","std_error",
// "reference_risk","distance","limit_error","closed_risk"} and, if asked for, its path
// {"kind":"path",..,"t","risk","reference_risk"}.
//   distance     |theta_L - theta_inf| of the end points, relative to |theta_inf|
//   limit_error  |b A - Gamma^-1| / |Gamma^-1|, Gamma = effective_covariance: of this length for
//                linear attention, of infinite length for softmax
// sign = -1 (test only): the limiting risk is that of a prediction with the wrong sign.
std::vector<Row> twin_rows(std::string_view section, const std::string& setting,
                           const TwinSetup& setup, ModelKind kind, Length length, double sign,
                           bool with_path);

// The flow at L = infinity alone, as a row of the same form with L = "inf".
Row reference_row(std::string_view section, const std::string& setting, const TwinSetup& setup,
                  double sign);

// -slope of log y on log x by least squares.
double falling_exponent(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace esscher::paper
