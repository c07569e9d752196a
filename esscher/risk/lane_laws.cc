#include "esscher/risk/detail/lane_laws.h"

#include <algorithm>
#include <cstddef>

#include "esscher/risk/detail/lanes.h"
#include "esscher/simd/detail/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/risk/lane_laws.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// out[a] += sum_b G(a, b) in[b] with rows of kTrainLanes, where G(a, b) is row a * step_a + b *
// step_b of G: of `rows` and `terms` of them.
void map_lanes(const double* G, Index step_a, Index step_b, Index rows, Index terms,
               const double* in, double* out) {
  const hn::ScalableTag<double> d;
  for (Index o = 0; o < kTrainLanes; o += static_cast<Index>(hn::Lanes(d))) {
    for (Index a = 0; a < rows; ++a) {
      auto sum = hn::LoadU(d, out + a * kTrainLanes + o);
      for (Index b = 0; b < terms; ++b) {
        const double* const g = G + (a * step_a + b * step_b) * kTrainLanes + o;
        sum = hn::MulAdd(hn::LoadU(d, g), hn::LoadU(d, in + b * kTrainLanes + o), sum);
      }
      hn::StoreU(sum, d, out + a * kTrainLanes + o);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher {

HWY_EXPORT(map_lanes);

void LaneLaws::resize() {
  memory_ =
      Scratch(static_cast<std::size_t>((D_ * width() + K_ - 1) * kTrainLanes) * sizeof(double));
}

LaneLaws::LaneLaws(const SideBySide& task, const Matrix& means)
    : D_(task.factor.rows()), K_(task.weights.size()), rank_(task.factor.cols()) {
  resize();
  const Index n = means.cols();
  for (Index i = 0; i < D_; ++i) {
    for (Index k = 0; k < rank_; ++k) std::fill_n(row(i, k), kTrainLanes, task.factor(i, k));
    for (Index k = 0; k < K_; ++k) {
      double* const to = row(i, rank_ + k);
      std::copy_n(&means(k * D_ + i, 0), n, to);
      std::fill_n(to + n, kTrainLanes - n, 0.0);
    }
  }
  double sum = 0;
  for (Index k = 0; k + 1 < K_; ++k) {
    sum += task.weights[k];
    std::fill_n(below_row(k), kTrainLanes, sum);
  }
}

LaneLaws::LaneLaws(const std::vector<std::shared_ptr<const SharedMixture>>& laws)
    : D_(laws.front()->dim()), K_(1), rank_(0) {
  Matrix cov;
  std::vector<Matrix> factors;
  for (const auto& law : laws) {
    K_ = std::max(K_, law->count());
    const bool is_last = cov.size() != 0 && law->cov == cov;
    factors.push_back(is_last ? factors.back() : psd_factor("layer", "covariance", law->cov));
    cov = law->cov;
    rank_ = std::max(rank_, factors.back().cols());
  }
  resize();
  std::fill_n(row(0, 0), D_ * width() * kTrainLanes, 0.0);
  std::fill_n(below_row(0), (K_ - 1) * kTrainLanes, 1.0);
  for (std::size_t j = 0; j < laws.size(); ++j) {
    const SharedMixture& law = *laws[j];
    const Matrix& F = factors[j];
    for (Index i = 0; i < D_; ++i) {
      for (Index k = 0; k < F.cols(); ++k) row(i, k)[j] = F(i, k);
      for (Index k = 0; k < law.count(); ++k) row(i, rank_ + k)[j] = law.means(k, i);
    }
    double sum = 0;
    for (Index k = 0; k + 1 < law.count(); ++k) {
      sum += law.weights[k];
      below_row(k)[j] = sum;
    }
  }
}

void LaneLaws::add_back(const Matrix& t, Eigen::Map<Matrix> out) const {
  ESSCHER_DISPATCH(map_lanes)(row(0, 0), 1, width(), width(), D_, t.data(), out.data());
}

Matrix LaneLaws::image(const Eigen::Map<Matrix>& u) const {
  Matrix out = Matrix::Zero(D_, kTrainLanes);
  ESSCHER_DISPATCH(map_lanes)(row(0, 0), width(), 1, D_, width(), u.data(), out.data());
  return out;
}

}  // namespace esscher
#endif
