// Shared by the sections on training: the regression task, its flow from the paper's balanced
// start, and flows beside that of the infinite prompt (training/twins.h) as rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "esscher/paper/section.h"
#include "esscher/training/twins.h"

namespace esscher::paper {

// reference: the flow of the infinite prompt. twin: a flow at finite length beside it. path: risks
// along both. bayes: the Bayes risk. eps: the length for a risk. closed: a risk in closed form.
enum class TrainingKind { reference, twin, path, bayes, eps, closed };

constexpr auto enum_names(TrainingKind) {
  return EnumNames<TrainingKind, 6>{"kind of row",
                                    {{{TrainingKind::reference, "reference"},
                                      {TrainingKind::twin, "twin"},
                                      {TrainingKind::path, "path"},
                                      {TrainingKind::bayes, "bayes"},
                                      {TrainingKind::eps, "eps"},
                                      {TrainingKind::closed, "closed"}}}};
}

struct TrainingRow {
  TrainingKind kind = TrainingKind::twin;
  std::optional<std::string> setting = {};
  std::optional<ModelKind> model = {};
  std::optional<Length> L = {};
  std::optional<FlowStatus> status = {};
  std::optional<double> t = {};
  double risk = 0;
  std::optional<double> std_error = {};
  std::optional<double> reference_risk = {}, flow_risk = {};
  // |theta_L - theta_inf| of the end points, relative to |theta_inf|.
  std::optional<double> distance = {};
  // |b A - Gamma^-1| / |Gamma^-1|, Gamma = effective_covariance: of this length for linear
  // attention, of infinite length for softmax.
  std::optional<double> limit_error = {};
  std::optional<double> sup_gradient_gap = {}, energy_defect = {}, scale_drift = {};
  std::optional<double> eps = {};
  std::optional<std::int64_t> length = {};  // absent if none was found
  std::optional<double> risk_before = {};   // absent if the first length was long enough

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("kind", row.kind, "", "what the row holds");
    column("setting", row.setting, "", "law of the tokens, or the task");
    column("model", row.model, "", "softmax or linear attention");
    column("L", row.L, "tokens", "length of the prompt");
    column("status", row.status, "", "how flow or training ended");
    column("t", row.t, "", "training time");
    column("risk", row.risk, "", "half a mean squared error");
    column("std_error", row.std_error, "", "standard error");
    column("reference_risk", row.reference_risk, "", "risk of the infinite-prompt flow");
    column("flow_risk", row.flow_risk, "", "risk on the nodes of the flow");
    column("distance", row.distance, "", "parameters from those of the reference, relative");
    column("limit_error", row.limit_error, "", "bA from its closed form, relative");
    column("sup_gradient_gap", row.sup_gradient_gap, "", "largest gap of gradients on the path");
    column("energy_defect", row.energy_defect, "", "defect of the energy identity of the flow");
    column("scale_drift", row.scale_drift, "", "drift of what the flow keeps");
    column("eps", row.eps, "", "risk allowed above the Bayes risk");
    column("length", row.length, "tokens", "smallest length with such a risk");
    column("risk_before", row.risk_before, "", "risk one token below that length");
  }
};

// d = 3 (tiny: 2), covariance 0.5^|i-j|, s2 = 1, no noise: the setting of Theorem 5.1.
LinearRegressionTask regression(const Options& options);

// Gradient flow of block parameters from U = alpha [[I/sqrt d, 0], [0, 0]], v_y = alpha, with alpha
// half of the largest the theorem allows.
TwinSetup twin_setup(const Options& options, const LinearRegressionTask& task);
double start_alpha(const LinearRegressionTask& task);

// One flow beside the reference, and its path; `test` are other nodes or draws for the risk at its
// end. Throws RuntimeFailure if it failed.
struct TwinRows {
  TrainingRow end;
  std::vector<TrainingRow> path;
};
TwinRows twin_rows(const std::string& setting, const TwinSetup& setup, ModelKind kind,
                   Length length, const std::optional<RiskOptions>& test = {});

// The flow at L = infinity alone.
TrainingRow reference_row(const std::string& setting, const TwinSetup& setup);

// |b A - Gamma^-1| / |Gamma^-1| of a block readout, Gamma = effective_covariance.
double limit_error(const LinearRegressionTask& task, const Readout& end, Length length);

// -slope of log y on log x by least squares.
double falling_exponent(std::span<const double> x, std::span<const double> y);

}  // namespace esscher::paper
