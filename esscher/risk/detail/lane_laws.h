// The laws of up to kTrainLanes prompts side by side: mixtures of one covariance whose tokens are
// linear images of white ones (layer_lanes.h). Internal to risk/layer_lanes.cc.
#pragma once

#include <memory>
#include <vector>

#include "esscher/base/scratch.h"
#include "esscher/risk/detail/lanes.h"
#include "esscher/task/side_by_side.h"
#include "esscher/task/token_law.h"

namespace esscher {

class LaneLaws {
 public:
  // Laws that share covariance and weights, with means [K D,n] of their own.
  LaneLaws(const SideBySide& task, const Matrix& means);
  // Any mixtures.
  explicit LaneLaws(const std::vector<std::shared_ptr<const SharedMixture>>& laws);

  [[nodiscard]] Index dim() const { return D_; }            // D
  [[nodiscard]] Index components() const { return K_; }     // K
  [[nodiscard]] Index width() const { return rank_ + K_; }  // of a white token
  // Cumulative probabilities, [K - 1,kTrainLanes].
  [[nodiscard]] const double* below() const { return below_row(0); }

  // out += G't for t [D,kTrainLanes], out [width,kTrainLanes].
  void add_back(const Matrix& t, Eigen::Map<Matrix> out) const;
  // G u for u [width,kTrainLanes].
  [[nodiscard]] Matrix image(const Eigen::Map<Matrix>& u) const;

 private:
  void resize();
  // Entries (i, k) of the matrices G, [kTrainLanes].
  [[nodiscard]] double* row(Index i, Index k) const {
    return memory_.as<double>() + (i * width() + k) * kTrainLanes;
  }
  [[nodiscard]] double* below_row(Index k) const { return row(D_, k); }

  Index D_, K_, rank_;
  Scratch memory_;  // G [D width], then below [K - 1]: rows of kTrainLanes
};

}  // namespace esscher
