#include "esscher/scaling/score_model.h"

#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/base/stop.h"
#include "esscher/measure/score_law.h"
#include "esscher/prompt/exact_prompt.h"
#include "esscher/universal/free_energy.h"
#include "esscher/universal/needle.h"
#include "esscher/universal/participation.h"
#include "esscher/universal/universal.h"

namespace esscher {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Attention multiplied(const Attention& attention, double f) {
  return Attention::from_uv(f * attention.U(), attention.V());
}

std::int64_t whole_length(double n) {
  if (!(n <= kMaxLayerLength)) {
    throw_argument("scaling", "length", to_text(n),
                   "a length up to 1e15 (longer ones are served for Gaussian scores)");
  }
  return std::llround(n);
}

// The smallest multiple in (0, 1e6] at which the condition holds, for a condition that stays true.
double first_multiple(const std::function<bool(double)>& holds) {
  double low = -14, high = 14;  // of log
  if (!holds(std::exp(high))) return kInfinity;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (holds(std::exp(middle)) ? high : low) = middle;
  }
  return std::exp(high);
}

bool is_frozen(const ScoreModel& scores, double f, double log_n) {
  const double lambda = scores.log_mgf(f, 1);
  return !std::isfinite(lambda) || scores.slope(f, 1) - lambda >= log_n;
}

bool is_averaging(const ScoreModel& scores, double f, double log_n) {
  const double lambda = scores.log_mgf(f, 1), second = scores.slope(f, 2);
  return std::isfinite(lambda) && std::isfinite(second) && second < log_n + lambda;
}

}  // namespace

ScoreModel ScoreModel::gaussian(double tau) {
  if (!(tau > 0 && tau <= kMaxTau)) {
    throw_argument("scaling", "tau", to_text(tau), "a number in (0, " + to_text(kMaxTau) + "]");
  }
  ScoreModel out;
  out.tau_ = tau;
  return out;
}

ScoreModel ScoreModel::layer(LayerScores scores) {
  if (!has_score_law(scores.mu)) {
    throw CapabilityError("scaling: the law " + scores.mu.name() +
                          " has no score law, which exact expectations need");
  }
  if (has_long_tails(scores.mu)) {
    throw CapabilityError("scaling: scores of " + scores.mu.name() +
                          " tokens have no exponential moments, which phases are defined by; "
                          "esscher universal has the weights of such prompts");
  }
  ScoreModel out;
  out.layer_ = std::move(scores);
  return out;
}

double ScoreModel::longest() const { return layer_ ? kMaxLayerLength : 1e300; }

double ScoreModel::mean(double f) const {
  return layer_ ? f * layer_->attention.tilt(layer_->z).dot(layer_->mu.mean()) : 0;
}

double ScoreModel::deviation(double f) const {
  if (!layer_) return f * tau_;
  const Vector a = layer_->attention.tilt(layer_->z);
  const double m = a.dot(layer_->mu.mean());
  return f * std::sqrt(std::max(0.0, a.dot(layer_->mu.second_moment() * a) - m * m));
}

double ScoreModel::log_mgf(double f, double t) const {
  if (!layer_) return 0.5 * t * t * f * f * tau_ * tau_;
  try {
    return layer_->mu.log_mgf(t * f * layer_->attention.tilt(layer_->z));
  } catch (const DomainError&) {
    return kInfinity;
  }
}

double ScoreModel::slope(double f, double t) const {
  if (!layer_) return t * f * f * tau_ * tau_;
  const Vector a = f * layer_->attention.tilt(layer_->z);
  try {
    return a.dot(layer_->mu.tilted_mean(t * a));
  } catch (const DomainError&) {
    return kInfinity;
  }
}

// Searches ask for weights and needles many times.
WeightNumbers ScoreModel::weights(double f, double n) const {
  check_stop();
  WeightNumbers out;
  if (!layer_) {
    const double tau = f * tau_;
    const FreeEnergy energy = free_energy(n, tau);
    out.H = mean_weight_square(n, tau);
    out.shrink = energy.shrink;
    out.free_energy = energy.F;
    out.entropy = weight_entropy(n, tau);
    if (n <= kMaxLayerLength) out.error = universal(whole_length(n), tau).M2c_ratio;
    return out;
  }
  const std::int64_t L = whole_length(n);
  ExactPrompt prompt(Prompt::plain(layer_->mu), multiplied(layer_->attention, f), layer_->z);
  const ScoreFunctions s = prompt.score_functions(L);
  const double m = mean(f);
  out.H = s.H;
  out.shrink = (s.M1 - m) / (slope(f, 1) - m);
  out.free_energy = s.free_energy;
  out.entropy = s.entropy;
  out.error = prompt.error_parts(Metric::output, L).total();
  return out;
}

double ScoreModel::needle(double f, double n, double gap) const {
  check_stop();
  const double score = mean(f) + f * gap;
  if (!layer_) return needle_weight(n, f * tau_, score);
  Prompt prompt = Prompt::plain(layer_->mu);
  prompt.sink_logits = {score};
  ExactPrompt exact(prompt, multiplied(layer_->attention, f), layer_->z);
  const Vector weights = exact.weights(whole_length(n));
  return weights(weights.size() - 1);
}

Phase phase(const ScoreModel& scores, double f, double log_n) {
  if (is_frozen(scores, f, log_n)) return Phase::frozen;
  return is_averaging(scores, f, log_n) ? Phase::averaging : Phase::intermediate;
}

double freezing_multiple(const ScoreModel& scores, double f, double log_n) {
  return first_multiple([&](double x) { return is_frozen(scores, x * f, log_n); });
}

double averaging_multiple(const ScoreModel& scores, double f, double log_n) {
  return first_multiple([&](double x) { return !is_averaging(scores, x * f, log_n); });
}

}  // namespace esscher
