// What a Study is made of: the queries and the engine (study.cc), and how rows become curves
// (study_curves.cc). Internal to these two.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "esscher/concentration/gaussian_average.h"
#include "esscher/concentration/study.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/prompt/errors.h"
#include "esscher/prompt/exact_mixture.h"

namespace esscher {

inline constexpr std::uint64_t kQueryStream = 0;

// Deviation of the scores that query z gives to tokens of this law.
double tau_of(const GaussianLaw& law, const Attention& attention, const VectorView& z);

struct Study::State {
  Problem problem;
  StudyOptions options;
  EngineChoice choice;
  std::vector<std::string> keys;
  std::optional<GaussianLaw> mu, nu;       // where Gaussian
  std::optional<GaussianAverage> average;  // exact in tokens and queries
  Matrix queries;                          // [Q,d] otherwise
  Vector weights;                          // [Q], 1 unless by nets
  Index groups = 0;                        // > 0: as many scramblings of a net; 0: drawn or given

  // The average over the two levels as rows, and the covariance of log D across lengths, known with
  // so many degrees of freedom.
  struct Curve {
    std::vector<StudyRow> rows;
    Matrix cov;
    double dof = std::numeric_limits<double>::infinity();
  };
  [[nodiscard]] std::vector<Json> compute_average(std::size_t i) const;
  [[nodiscard]] std::vector<Json> compute_queries(std::size_t i) const;
  [[nodiscard]] Curve average_curve(std::size_t metric, const std::vector<Json>& rows) const;
  [[nodiscard]] Curve query_curve(std::size_t metric, const std::vector<Json>& rows,
                                  StudyResult& result) const;
  [[nodiscard]] double frozen(std::int64_t L) const;
  void draw_queries();
  [[nodiscard]] std::string query_text() const;
  // Whether the exact engine refuses because of too large a tau; the longest prompt, with the
  // smallest error, refuses first.
  [[nodiscard]] bool too_sharp() const;
  [[nodiscard]] double max_tau() const { return mu ? kMaxTau : kMaxMixtureTau; }
  [[nodiscard]] RegimeReport regime() const;
};

}  // namespace esscher
