#include "esscher/icl/train_lanes.h"

#include <array>
#include <cmath>
#include <span>

#include "esscher/prompt/score_sums.h"

namespace esscher {
namespace {

// Normals of one prompt: w [d], query [d], label noise of the query, noise off the span [2 D].
Index normals_per_prompt(Index d) { return (2 * d + 1 + 2 * (d + 1) + 3) / 4 * 4; }

// Tokens of prompt i start at this block of their stream: room for 2^41 tokens each.
std::uint64_t first_block(Index prompt) { return static_cast<std::uint64_t>(prompt) << 40; }

// A sum of squares left after cancellation below this share is the rounding of float sums; its
// square root would be noise of size 1e-3. It happens when one token has all the weight.
constexpr double kFloatFloor = 1e-6;

double query_noise(const LinearRegressionTask& task) {
  return task.query_noise ? std::sqrt(task.noise_variance) : 0.0;
}

}  // namespace

TaskDraw draw_task(const LinearRegressionTask& task, const Matrix& F, const Matrix& Fq,
                   const Stream& stream, Index prompt) {
  const Index d = task.dim;
  const Index stride = normals_per_prompt(d);
  std::vector<float> n(static_cast<std::size_t>(2 * d + 1));
  stream.split(0).fill_normal(static_cast<std::uint64_t>(prompt * stride), std::span<float>(n));
  const Vector all = Eigen::Map<const Eigen::VectorXf>(n.data(), 2 * d + 1).cast<double>();
  const Vector w = std::sqrt(task.task_variance) * all.head(d);
  const Vector n_x = all.segment(d, d);
  return {F.transpose() * w, n_x, w.dot(Fq * n_x) + query_noise(task) * all(2 * d)};
}

TrainLanes::TrainLanes(const LinearRegressionTask& task, const Matrix& F, const Matrix& Fq,
                       const Stream& stream, Index first, Index count)
    : d_(task.dim),
      count_(count),
      sigma_(std::sqrt(task.noise_variance)),
      first_(first),
      tokens_(stream.split(1)),
      w_(d_, kTrainLanes),
      n_x_(d_, kTrainLanes),
      noise1_(d_ + 1, kTrainLanes),
      noise2_(d_ + 1, kTrainLanes) {
  const Index stride = normals_per_prompt(d_);
  std::vector<float> n(static_cast<std::size_t>(stride * kTrainLanes), 0.0F);
  stream.split(0).fill_normal(static_cast<std::uint64_t>(first * stride),
                              std::span<float>(n.data(), static_cast<std::size_t>(stride * count)));
  const auto take = [&](Index i, Index j) {
    return static_cast<double>(n[static_cast<std::size_t>(j * stride + i)]);
  };
  Rows w(d_, kTrainLanes);
  for (Index j = 0; j < kTrainLanes; ++j) {
    for (Index i = 0; i < d_; ++i) {
      w(i, j) = take(i, j);
      n_x_(i, j) = take(d_ + i, j);
    }
    y_(j) = take(2 * d_, j);
    for (Index i = 0; i <= d_; ++i) {
      noise1_(i, j) = take(2 * d_ + 1 + i, j);
      noise2_(i, j) = take(3 * d_ + 2 + i, j);
    }
  }
  w *= std::sqrt(task.task_variance);
  y_ *= query_noise(task);
  w_.setZero();
  for (Index i = 0; i < d_; ++i) {
    Row x = Row::Zero();
    for (Index k = 0; k < d_; ++k) {
      w_.row(i).array() += F(k, i) * w.row(k).array();
      x += Fq(i, k) * n_x_.row(k).array();
    }
    y_ += w.row(i).array() * x;
  }
}

double TrainLanes::softmax(const Matrix& U, const Vector& r, std::int64_t L, double loss_factor,
                           double residual_factor, Matrix& grad_U, Vector& grad_r) {
  const Index D = d_ + 1;
  const auto lanes = [](auto&& row) { return row.array(); };
  // Directions: e1 from the tilt, e2 from the functional.
  Rows e1(D, kTrainLanes);
  Rows e2(D, kTrainLanes);
  Row a_y = Row::Zero();
  for (Index k = 0; k < d_; ++k) a_y += U(d_, k) * lanes(n_x_.row(k));
  Row tau2 = Row::Zero();
  Row size2 = Row::Zero();
  for (Index i = 0; i < D; ++i) {
    Row a = i < d_ ? Row(a_y * lanes(w_.row(i))) : Row(sigma_ * a_y);
    if (i < d_) {
      for (Index k = 0; k < d_; ++k) a += U(i, k) * lanes(n_x_.row(k));
    }
    e1.row(i) = a;
    e2.row(i) = i < d_ ? Row(r(i) + r(d_) * lanes(w_.row(i))) : Row::Constant(sigma_ * r(d_));
    tau2 += a * a;
    size2 += lanes(e2.row(i)) * lanes(e2.row(i));
  }
  const Row tau = tau2.sqrt();
  const Row inverse_tau = (tau > 0).select(tau.inverse(), Row::Zero());
  Row c1 = Row::Zero();
  for (Index i = 0; i < D; ++i) {
    lanes(e1.row(i)) *= inverse_tau;
    c1 += lanes(e1.row(i)) * lanes(e2.row(i));
  }
  Row rest2 = Row::Zero();
  for (Index i = 0; i < D; ++i) {
    lanes(e2.row(i)) -= c1 * lanes(e1.row(i));
    rest2 += lanes(e2.row(i)) * lanes(e2.row(i));
  }
  // What is left of a functional parallel to the tilt is rounding: 1e-13 of its size.
  const Row c2 = (rest2 > 1e-26 * size2).select(rest2.sqrt(), Row::Zero());
  const Row inverse_c2 = (c2 > 0).select(c2.inverse(), Row::Zero());
  for (Index i = 0; i < D; ++i) lanes(e2.row(i)) *= inverse_c2;

  std::array<ScoreRow, kTrainLanes> rows;
  std::array<ScoreSums, kTrainLanes> out;
  const double reach = std::sqrt(2 * std::log(static_cast<double>(L)));
  for (Index j = 0; j < count_; ++j) {
    rows[static_cast<std::size_t>(j)] = {first_block(first_ + j), tau(j), std::min(tau(j), reach)};
  }
  const auto used = static_cast<std::size_t>(count_);
  pair_sums_float(tokens_, std::span<const ScoreRow>(rows.data(), used), L,
                  std::span<ScoreSums>(out.data(), used));

  // Mean m and covariance v of (g_1 - h, g_2) under softmax; noise covariances q / s0^2.
  Row m1 = Row::Zero(), m2 = Row::Zero(), v11 = Row::Zero(), v12 = Row::Zero(), v22 = Row::Zero();
  Row q0 = Row::Zero(), q1 = Row::Zero(), q2 = Row::Zero();
  Row h = Row::Zero();
  for (Index j = 0; j < count_; ++j) {
    const ScoreSums& s = out[static_cast<std::size_t>(j)];
    const double scale = 1 / s.s0;
    m1(j) = s.s1[0] * scale;
    m2(j) = s.s1[1] * scale;
    v11(j) = s.s2[0] * scale - m1(j) * m1(j);
    v12(j) = s.s2[1] * scale - m1(j) * m2(j);
    v22(j) = s.s2[2] * scale - m2(j) * m2(j);
    const double f = c1(j) * m1(j) + c2(j) * m2(j);
    const double t1 = c1(j) * s.q1[0] + c2(j) * s.q1[1];
    const double t2 =
        c1(j) * c1(j) * s.q2[0] + 2 * c1(j) * c2(j) * s.q2[1] + c2(j) * c2(j) * s.q2[2];
    const double scale2 = scale * scale;
    q0(j) = s.q0 * scale2;
    if (L == 1) {
      v11(j) = v12(j) = v22(j) = 0;
    } else {
      q1(j) = (t1 - f * s.q0) * scale2;
      const double square = t2 - 2 * f * t1 + f * f * s.q0;
      if (square > kFloatFloor * (t2 + f * f * s.q0)) q2(j) = square * scale2;
    }
    h(j) = rows[static_cast<std::size_t>(j)].centre;
  }
  m1 += h;
  const Row l11 = q0.sqrt();
  const Row l21 = (l11 > 0).select(q1 / l11, Row::Zero());
  const Row l22 = (q2 - l21 * l21).max(0.0).sqrt();
  // Coordinates of the answers along e1 and e2, less what the raw noise already has there.
  Row n11 = Row::Zero(), n12 = Row::Zero(), n21 = Row::Zero(), n22 = Row::Zero();
  for (Index i = 0; i < D; ++i) {
    const Row xi1 = l11 * lanes(noise1_.row(i));
    const Row xi2 = l21 * lanes(noise1_.row(i)) + l22 * lanes(noise2_.row(i));
    noise1_.row(i) = xi1;
    noise2_.row(i) = xi2;
    n11 += xi1 * lanes(e1.row(i));
    n12 += xi1 * lanes(e2.row(i));
    n21 += xi2 * lanes(e1.row(i));
    n22 += xi2 * lanes(e2.row(i));
  }
  const Row p11 = m1 - n11, p12 = m2 - n12;
  const Row p21 = c1 * v11 + c2 * v12 - n21, p22 = c1 * v12 + c2 * v22 - n22;
  Row residual = c1 * m1 + c2 * m2 - y_;
  residual.tail(kTrainLanes - count_).setZero();
  const Row g = residual_factor * residual;

  // Tokens (u_x, w~'u_x + sig u_y) from white answers u, and the sums over lanes.
  Row z1_y = Row::Zero();
  Row z2_y = Row::Zero();
  for (Index i = 0; i < D; ++i) {
    const Row u1 = lanes(noise1_.row(i)) + p11 * lanes(e1.row(i)) + p12 * lanes(e2.row(i));
    const Row u2 = g * (lanes(noise2_.row(i)) + p21 * lanes(e1.row(i)) + p22 * lanes(e2.row(i)));
    if (i == d_) {
      z1_y += sigma_ * u1;
      z2_y += sigma_ * u2;
      break;
    }
    z1_y += lanes(w_.row(i)) * u1;
    z2_y += lanes(w_.row(i)) * u2;
    grad_r(i) += (g * u1).sum();
    for (Index k = 0; k < d_; ++k) grad_U(i, k) += (u2 * lanes(n_x_.row(k))).sum();
  }
  grad_r(d_) += (g * z1_y).sum();
  for (Index k = 0; k < d_; ++k) grad_U(d_, k) += (z2_y * lanes(n_x_.row(k))).sum();
  return loss_factor * (residual * residual).sum();
}

}  // namespace esscher
