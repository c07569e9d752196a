// Moments of the keys that a query sees, where that is not the beginning of the prompt. From one
// query to the next only the keys that appear or vanish are added and subtracted.
#pragma once

#include <vector>

#include "esscher/heads/detail/walk.h"

namespace esscher {

// The listed rows.
Matrix gathered(const MatrixView& rows, const std::vector<Index>& which);

class VisibleMoments {
 public:
  // keys [n,dk], values [n,dv] relative to the origins of the model. Keys on the other side of a
  // split are left out. What is given must outlive this.
  VisibleMoments(SurrogateModel& model, const Matrix& keys, const Matrix& values);

  // Makes the model's moments those of these keys, in ascending order.
  void move_to(const std::vector<Index>& seen);

 private:
  [[nodiscard]] PromptMoments part(const std::vector<Index>& which) const;

  SurrogateModel& model_;
  const Matrix& keys_;
  const Matrix& values_;
  Matrix shares_;  // [n,k]
  std::vector<Index> inside_;
};

}  // namespace esscher
