#include "esscher/heads/shape.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "esscher/base/parallel.h"
#include "esscher/estimate/quantile.h"
#include "esscher/heads/detail/whitening.h"
#include "esscher/simd/gemm.h"

namespace esscher {
namespace {

constexpr std::array kFamilies = {ShapeFamily::even, ShapeFamily::uneven, ShapeFamily::spread};

// A law on two points with mean 0 and variance 1: `high` with probability p, else low = -1 / high.
struct TwoPoints {
  double p;
  double high;
  double low;

  // The mean under the tilt e^{t y}. The exponential of a large argument is infinite and its share
  // then 0, which is the limit.
  [[nodiscard]] double tilted_mean(double t) const {
    const double share = p / (p + (1 - p) * std::exp(-t * (high - low)));
    return share * high + (1 - share) * low;
  }
};

TwoPoints two_points(ShapeFamily family) {
  if (family == ShapeFamily::even) return {.p = 0.5, .high = 1, .low = -1};
  return {.p = 0.125, .high = std::sqrt(7.0), .low = -1 / std::sqrt(7.0)};
}

// The limit's relative error for the query with loadings b [r].
double query_harm(ShapeFamily family, double strength, const Vector& b) {
  if (family == ShapeFamily::spread) {
    const double more = strength * std::tanh(strength * b.squaredNorm() / 2);
    return more / (1 + more);
  }
  const TwoPoints y = two_points(family);
  const auto mean = [&](double t) {
    return (1 - strength * strength) * t + strength * y.tilted_mean(strength * t);
  };
  const Vector tilted = b.unaryExpr(mean);
  return (tilted - b).norm() / tilted.norm();
}

Matrix gaussian_scores(const Matrix& loadings, Index n, const Stream& stream) {
  Matrix x(n, loadings.cols());
  stream.fill_normal(0, std::span<double>(x.data(), static_cast<std::size_t>(x.size())));
  Matrix scores = Matrix::Zero(n, loadings.rows());
  add_product(x, Matrix(loadings.transpose()), scores);
  return scores;
}

// The columns that vary, centred.
Matrix varying_scores(const MatrixView& scores) {
  const Vector mean = scores.colwise().mean();
  Matrix out(scores.rows(), scores.cols());
  Index used = 0;
  for (Index i = 0; i < scores.cols(); ++i) {
    const double largest = scores.col(i).cwiseAbs().maxCoeff();
    out.col(used) = scores.col(i).array() - mean(i);
    if (out.col(used).cwiseAbs().maxCoeff() > 1e-12 * largest) ++used;
  }
  out.conservativeResize(Eigen::NoChange, used);
  return out;
}

// Draws of y [n,r] from bits: one of a word is 1 with probability 1/2, three of it are 1 with
// probability 1/8. A word serves 16 coordinates.
Matrix two_point_draws(ShapeFamily family, double strength, Index n, Index r,
                       const Stream& stream) {
  const TwoPoints law = two_points(family);
  const std::array<double, 2> points = {strength * law.low, strength * law.high};
  Matrix y(n, r);
  std::uint64_t word = 0;
  std::uint64_t drawn = 0;
  for (Index l = 0; l < n; ++l) {
    for (Index j = 0; j < r; ++j) {
      if (j % 16 == 0) {
        word = stream.bits(drawn++);
        if (family == ShapeFamily::uneven) word &= (word >> 16) & (word >> 32);
      }
      y(l, j) = points[(word >> (j % 16)) & 1];
    }
  }
  return y;
}

std::vector<double> null_departures(const Matrix& loadings, Index n, const Stream& stream) {
  const Vector tau = loadings.rowwise().norm();
  std::vector<double> out(kShapeReplicates);
  parallel_for(kShapeReplicates, [&](std::int64_t r) {
    const Stream replicate = stream.split(static_cast<std::uint64_t>(r));
    out[static_cast<std::size_t>(r)] =
        departure(gaussian_scores(loadings, n, replicate.split(0)), tau);
  });
  return out;
}

// The share of prompts from the family that depart by more than the bar.
double seen(ShapeFamily family, double strength, const Matrix& loadings, Index n, double bar,
            const Stream& stream) {
  const Vector tau = loadings.rowwise().norm();
  std::vector<double> above(kShapeReplicates);
  parallel_for(kShapeReplicates, [&](std::int64_t r) {
    const Stream replicate = stream.split(static_cast<std::uint64_t>(r));
    const Matrix scores =
        family_scores(family, strength, loadings, gaussian_scores(loadings, n, replicate.split(0)),
                      replicate.split(1));
    above[static_cast<std::size_t>(r)] = departure(scores, tau) > bar ? 1 : 0;
  });
  return std::accumulate(above.begin(), above.end(), 0.0) / static_cast<double>(kShapeReplicates);
}

double smallest_power(double harm, const Matrix& loadings, Index n, double bar,
                      const Stream& stream) {
  double power = 1;
  for (const ShapeFamily family : kFamilies) {
    const std::optional<double> strength = harmful_strength(family, harm, loadings);
    if (!strength) continue;
    power = std::min(power, seen(family, *strength, loadings, n, bar,
                                 stream.split(static_cast<std::uint64_t>(family))));
  }
  return power;
}

}  // namespace

Vector score_deviations(const MatrixView& scores) {
  const Vector mean = scores.colwise().mean();
  return (scores.rowwise() - mean.transpose()).colwise().squaredNorm().cwiseSqrt() /
         std::sqrt(static_cast<double>(scores.rows()));
}

double departure(const MatrixView& scores, const Vector& tau) {
  const Index q = scores.cols();
  const Eigen::ArrayXd mean = scores.colwise().mean().transpose();
  Eigen::ArrayXd s2 = Eigen::ArrayXd::Zero(q), s3 = s2, s4 = s2, x(q), x2(q);
  for (Index l = 0; l < scores.rows(); ++l) {
    x = scores.row(l).transpose().array() - mean;
    x2 = x * x;
    s2 += x2;
    s3 += x2 * x;
    s4 += x2 * x2;
  }
  const auto n = static_cast<double>(scores.rows());
  std::vector<double> sizes;
  for (Index i = 0; i < q; ++i) {
    const double variance = s2(i) / n;
    const bool varies = variance > 0;
    const double skewness = varies ? s3(i) / n / (variance * std::sqrt(variance)) : 0.0;
    const double excess = varies ? s4(i) / n / (variance * variance) - 3 : 0.0;
    sizes.push_back(std::hypot(tau(i) * skewness / 2, tau(i) * tau(i) * excess / 6));
  }
  return median(sizes);
}

double family_harm(ShapeFamily family, double strength, const Matrix& loadings) {
  std::vector<double> harms;
  for (Index i = 0; i < loadings.rows(); ++i) {
    harms.push_back(query_harm(family, strength, loadings.row(i)));
  }
  return median(harms);
}

std::optional<double> harmful_strength(ShapeFamily family, double harm, const Matrix& loadings) {
  if (family_harm(family, 1.0, loadings) < harm) return std::nullopt;
  double low = 0;
  double high = 1;
  while (high - low > 1e-6) {
    const double middle = 0.5 * (low + high);
    (family_harm(family, middle, loadings) < harm ? low : high) = middle;
  }
  return high;
}

Matrix family_scores(ShapeFamily family, double strength, const Matrix& loadings, Matrix gaussian,
                     const Stream& stream) {
  Matrix out = std::move(gaussian);
  if (family == ShapeFamily::spread) {
    for (Index l = 0; l < out.rows(); ++l) {
      out.row(l) *= std::sqrt(1 + strength * stream.rademacher(static_cast<std::uint64_t>(l)));
    }
    return out;
  }
  out *= std::sqrt(1 - strength * strength);
  add_product(two_point_draws(family, strength, out.rows(), loadings.cols(), stream),
              Matrix(loadings.transpose()), out);
  return out;
}

std::optional<KeyShape> key_shape(const MatrixView& scores, double harm, const Stream& stream) {
  const Matrix s = varying_scores(scores);
  const Index n = s.rows();
  if (n < 4 || s.cols() == 0) return std::nullopt;
  const Matrix loadings = whitening(s.transpose() * s / static_cast<double>(n)).up;
  const std::vector<double> null = null_departures(loadings, n, stream.split(0));
  KeyShape out{.departure = departure(s, score_deviations(s)),
               .typical = median(null),
               .limit = order_statistic(null, 1 - kShapeLevel),
               .harm = harm};
  if (!out.refused()) {
    out.power = smallest_power(harm, loadings, n, out.bar(), stream.split(1));
  }
  return out;
}

}  // namespace esscher
