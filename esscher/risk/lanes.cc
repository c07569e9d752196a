#include "esscher/risk/detail/lanes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "esscher/prompt/sampled_sums.h"
#include "esscher/random/draws.h"
#include "esscher/random/normal_sequences.h"
#include "esscher/simd/detail/dispatch.h"
#include "esscher/task/token_lanes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/risk/lanes.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef ESSCHER_RISK_LANES_ONCE
#define ESSCHER_RISK_LANES_ONCE
namespace esscher {

// Rows of kTrainLanes doubles. The first ones are what is drawn for a prompt.
struct LaneRows {
  using Row = double*;
  explicit LaneRows(Index d_)
      : d(d_), memory(static_cast<std::size_t>((7 * d + 6 + kScalars) * kTrainLanes), 0.0) {}

  static constexpr Index kScalars = 11;
  [[nodiscard]] static Index drawn(Index d) { return 4 * d + 3; }
  [[nodiscard]] Row row(Index i) { return memory.data() + i * kTrainLanes; }
  [[nodiscard]] Row w(Index i) { return row(i); }                   // [d], then w~
  [[nodiscard]] Row query(Index i) { return row(d + i); }           // n_x [d]
  [[nodiscard]] Row y() { return row(2 * d); }                      // label noise, then target
  [[nodiscard]] Row noise1(Index i) { return row(2 * d + 1 + i); }  // [D], then u1
  [[nodiscard]] Row noise2(Index i) { return row(3 * d + 2 + i); }  // [D], then g u2
  [[nodiscard]] Row e1(Index i) { return row(4 * d + 3 + i); }      // [D]
  [[nodiscard]] Row e2(Index i) { return row(5 * d + 4 + i); }      // [D]
  [[nodiscard]] Row work(Index i) { return row(6 * d + 5 + i); }    // [d]
  [[nodiscard]] Row scalar(Index i) { return row(7 * d + 6 + i); }  // one row each, named below
  [[nodiscard]] Row used() { return scalar(0); }  // 1 for a prompt, 0 for an empty lane
  [[nodiscard]] Row tau() { return scalar(1); }
  [[nodiscard]] Row c1() { return scalar(2); }
  [[nodiscard]] Row c2() { return scalar(3); }
  // Mean of (g_1, g_2) under the weights, their covariance times (c1, c2), factor of the noise.
  [[nodiscard]] Row m1() { return scalar(4); }
  [[nodiscard]] Row m2() { return scalar(5); }
  [[nodiscard]] Row k1() { return scalar(6); }  // c1 v11 + c2 v12
  [[nodiscard]] Row k2() { return scalar(7); }  // c1 v12 + c2 v22
  [[nodiscard]] Row l11() { return scalar(8); }
  [[nodiscard]] Row l21() { return scalar(9); }
  [[nodiscard]] Row l22() { return scalar(10); }

  Index d;
  std::vector<double> memory;
};

}  // namespace esscher
#endif

#include "esscher/risk/lane_answers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using DD = hn::ScalableTag<double>;
using VD = hn::Vec<DD>;

// w [d] and the query noise in y become w~ and the target; e1, e2, tau, c1, c2 are filled.
void lane_directions(const LaneBatch& batch, double sigma, LaneRows& rows) {
  const DD dd;
  const Index d = rows.d;
  const Matrix& U = *batch.U;
  const Vector& r = *batch.r;
  for (Index o = 0; o < kTrainLanes; o += static_cast<Index>(hn::Lanes(dd))) {
    const auto at = [&](double* row) HWY_ATTR { return hn::LoadU(dd, row + o); };
    const auto put = [&](VD v, double* row) HWY_ATTR { hn::StoreU(v, dd, row + o); };
    const auto c = [&](double x) HWY_ATTR { return hn::Set(dd, x); };
    add_answers(dd, batch, d, o, rows);
    VD a_y = hn::Zero(dd);
    for (Index i = 0; i < d; ++i) a_y = hn::MulAdd(c(U(d, i)), at(rows.query(i)), a_y);
    VD tau2 = hn::Zero(dd);
    VD size2 = hn::Zero(dd);
    for (Index i = 0; i <= d; ++i) {
      const VD lift = i < d ? at(rows.work(i)) : c(sigma);
      VD a = hn::Mul(a_y, lift);
      if (i < d) {
        put(lift, rows.w(i));
        for (Index k = 0; k < d; ++k) a = hn::MulAdd(c(U(i, k)), at(rows.query(k)), a);
      }
      const VD read = hn::MulAdd(c(r(d)), lift, c(i < d ? r(i) : 0.0));
      put(a, rows.e1(i));
      put(read, rows.e2(i));
      tau2 = hn::MulAdd(a, a, tau2);
      size2 = hn::MulAdd(read, read, size2);
    }
    const auto inverse = [&](VD v) HWY_ATTR {
      return hn::IfThenElseZero(hn::Gt(v, hn::Zero(dd)), hn::Div(c(1), v));
    };
    const VD tau = hn::Sqrt(tau2);
    const VD inverse_tau = inverse(tau);
    VD c1 = hn::Zero(dd);
    for (Index i = 0; i <= d; ++i) {
      const VD unit = hn::Mul(at(rows.e1(i)), inverse_tau);
      put(unit, rows.e1(i));
      c1 = hn::MulAdd(unit, at(rows.e2(i)), c1);
    }
    VD rest2 = hn::Zero(dd);
    for (Index i = 0; i <= d; ++i) {
      const VD rest = hn::NegMulAdd(c1, at(rows.e1(i)), at(rows.e2(i)));
      put(rest, rows.e2(i));
      rest2 = hn::MulAdd(rest, rest, rest2);
    }
    // If the functional is parallel to the tilt, what is left of it is rounding, 1e-13 of its size.
    const VD c2 = hn::IfThenElseZero(hn::Gt(rest2, hn::Mul(c(1e-26), size2)), hn::Sqrt(rest2));
    const VD inverse_c2 = inverse(c2);
    for (Index i = 0; i <= d; ++i) put(hn::Mul(at(rows.e2(i)), inverse_c2), rows.e2(i));
    put(tau, rows.tau());
    put(c1, rows.c1());
    put(c2, rows.c2());
  }
}

// Makes the answers in white coordinates, u1 = mean and u2 = covariance (second moment for linear
// attention) times r~, turns them into tokens (u_x, w~'u_x + sig u_y), and sums over lanes.
double lane_gradient(const LaneBatch& batch, double sigma, LaneRows& rows, Matrix& grad_U,
                     Vector& grad_r) {
  const DD dd;
  const auto lanes = static_cast<Index>(hn::Lanes(dd));
  const Index d = rows.d;
  VD loss = hn::Zero(dd);
  for (Index o = 0; o < kTrainLanes; o += lanes) {
    const auto at = [&](double* row) HWY_ATTR { return hn::LoadU(dd, row + o); };
    const auto put = [&](VD v, double* row) HWY_ATTR { hn::StoreU(v, dd, row + o); };
    const VD l11 = at(rows.l11());
    const VD l21 = at(rows.l21());
    const VD l22 = at(rows.l22());
    // The coordinates along e1 and e2, minus those that the noise drawn in all coordinates has
    // there.
    const VD m1 = at(rows.m1());
    const VD m2 = at(rows.m2());
    VD p11 = m1;
    VD p12 = m2;
    VD p21 = at(rows.k1());
    VD p22 = at(rows.k2());
    for (Index i = 0; i <= d; ++i) {
      const VD raw = at(rows.noise1(i));
      const VD xi1 = hn::Mul(l11, raw);
      const VD xi2 = hn::MulAdd(l21, raw, hn::Mul(l22, at(rows.noise2(i))));
      put(xi1, rows.noise1(i));
      put(xi2, rows.noise2(i));
      const VD e1 = at(rows.e1(i));
      const VD e2 = at(rows.e2(i));
      p11 = hn::NegMulAdd(xi1, e1, p11);
      p12 = hn::NegMulAdd(xi1, e2, p12);
      p21 = hn::NegMulAdd(xi2, e1, p21);
      p22 = hn::NegMulAdd(xi2, e2, p22);
    }
    const VD prediction = hn::MulAdd(at(rows.c1()), m1, hn::Mul(at(rows.c2()), m2));
    const VD residual = hn::Mul(hn::Sub(prediction, at(rows.y())), at(rows.used()));
    loss = hn::MulAdd(residual, residual, loss);
    const VD g = hn::Mul(hn::Set(dd, batch.residual_factor), residual);
    VD z1_y = hn::Zero(dd);
    VD z2_y = hn::Zero(dd);
    for (Index i = 0; i <= d; ++i) {
      const VD e1 = at(rows.e1(i));
      const VD e2 = at(rows.e2(i));
      const VD u1 = hn::Mul(g, hn::MulAdd(p11, e1, hn::MulAdd(p12, e2, at(rows.noise1(i)))));
      const VD u2 = hn::Mul(g, hn::MulAdd(p21, e1, hn::MulAdd(p22, e2, at(rows.noise2(i)))));
      const VD lift = i < d ? at(rows.w(i)) : hn::Set(dd, sigma);
      z1_y = hn::MulAdd(lift, u1, z1_y);
      z2_y = hn::MulAdd(lift, u2, z2_y);
      put(i < d ? u1 : z1_y, rows.noise1(i));
      put(i < d ? u2 : z2_y, rows.noise2(i));
    }
  }
  const auto reduce = [&](VD v) HWY_ATTR { return hn::GetLane(hn::SumOfLanes(dd, v)); };
  for (Index i = 0; i <= d; ++i) {
    VD sum = hn::Zero(dd);
    for (Index o = 0; o < kTrainLanes; o += lanes) {
      sum = hn::Add(sum, hn::LoadU(dd, rows.noise1(i) + o));
    }
    grad_r(i) += reduce(sum);
    for (Index k = 0; k < d; ++k) {
      VD product = hn::Zero(dd);
      for (Index o = 0; o < kTrainLanes; o += lanes) {
        product = hn::MulAdd(hn::LoadU(dd, rows.noise2(i) + o), hn::LoadU(dd, rows.query(k) + o),
                             product);
      }
      grad_U(i, k) += reduce(product);
    }
  }
  return batch.loss_factor * reduce(loss);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher {

HWY_EXPORT(lane_directions);
HWY_EXPORT(lane_gradient);

namespace {

// If cancellation leaves less than this share of a sum of squares, the rest is the rounding of
// float sums, and its square root would be noise of size 1e-3. This happens when one token has all
// the weight.
constexpr double kFloatFloor = 1e-6;

double query_noise(const LinearRegressionTask& task) {
  return task.query_noise ? std::sqrt(task.noise_variance) : 0.0;
}

// Prompt i reads sequence i of the stream.
void draw_lanes(const LinearRegressionTask& task, const Stream& stream, Index first, Index count,
                LaneRows& rows) {
  const Index d = task.dim;
  std::array<std::uint64_t, kTrainLanes> prompts;
  std::iota(prompts.begin(), prompts.end(), static_cast<std::uint64_t>(first));
  const auto drawn = static_cast<std::size_t>(LaneRows::drawn(d) * kTrainLanes);
  fill_normal_sequences(stream, prompts, std::span(rows.memory).first(drawn));
  const double s = std::sqrt(task.task_variance);
  const double label = query_noise(task);
  for (Index j = 0; j < d * kTrainLanes; ++j) rows.w(0)[j] *= s;
  for (Index j = 0; j < kTrainLanes; ++j) rows.y()[j] *= label;
  std::fill_n(rows.used(), count, 1.0);
}

void read_sums(const ScoreSums& s, double centre, std::int64_t L, Index j, LaneRows& rows) {
  const double scale = 1 / s.s0;
  const double m1 = s.s1[0] * scale;
  const double m2 = s.s1[1] * scale;
  const double c1 = rows.c1()[j];
  const double c2 = rows.c2()[j];
  const double l11 = std::sqrt(s.q0) * scale;
  rows.m1()[j] = centre + m1;
  rows.m2()[j] = m2;
  rows.l11()[j] = l11;
  if (L == 1) return;  // no covariance, exactly
  const double v11 = s.s2[0] * scale - m1 * m1;
  const double v12 = s.s2[1] * scale - m1 * m2;
  const double v22 = s.s2[2] * scale - m2 * m2;
  rows.k1()[j] = c1 * v11 + c2 * v12;
  rows.k2()[j] = c1 * v12 + c2 * v22;
  const double f = c1 * m1 + c2 * m2;
  const double t1 = c1 * s.q1[0] + c2 * s.q1[1];
  const double t2 = c1 * c1 * s.q2[0] + 2 * c1 * c2 * s.q2[1] + c2 * c2 * s.q2[2];
  const double square = t2 - 2 * f * t1 + f * f * s.q0;
  const double l21 = (t1 - f * s.q0) * scale * scale / l11;
  rows.l21()[j] = l21;
  if (square > kFloatFloor * (t2 + f * f * s.q0)) {
    rows.l22()[j] = std::sqrt(std::max(square * scale * scale - l21 * l21, 0.0));
  }
}

void read_scores(const Stream& tokens, Index first, Index count, std::int64_t L, LaneRows& rows) {
  std::array<ScoreRow, kTrainLanes> starts;
  std::array<ScoreSums, kTrainLanes> sums;
  const double reach = std::sqrt(2 * std::log(static_cast<double>(L)));
  for (Index j = 0; j < count; ++j) {
    const double tau = rows.tau()[j];
    starts[static_cast<std::size_t>(j)] = {static_cast<std::uint64_t>(first + j), tau,
                                           std::min(tau, reach)};
  }
  const auto used = static_cast<std::size_t>(count);
  pair_sums_float(tokens, std::span<const ScoreRow>(starts.data(), used), L,
                  std::span<ScoreSums>(sums.data(), used));
  for (std::size_t j = 0; j < used; ++j) {
    read_sums(sums[j], starts[j].centre, L, static_cast<Index>(j), rows);
  }
}

// For linear attention the mean is S a~ and the product S r~, with S = (1/L) sum u u'. The block of
// S on span(e1, e2) is Wishart(I_2, L) / L = A A' / L, where (Bartlett)
//   A11^2 ~ chi2(L),   A21 ~ N(0,1),   A22^2 ~ chi2(L-1)
// Given A, the rest of (S e1, S e2) is normal, and its rows have the covariance A A' / L^2.
void read_gram(const Stream& gram, Index prompt, std::int64_t L, Index j, LaneRows& rows) {
  const Stream own = gram.split(static_cast<std::uint64_t>(prompt));
  const double scale = 1 / static_cast<double>(L);
  const double a11 = std::sqrt(chi_square_draw(own.split(0), static_cast<double>(L)));
  const double a22 =
      L == 1 ? 0.0 : std::sqrt(chi_square_draw(own.split(1), static_cast<double>(L - 1)));
  const double a21 = own.normal(0);
  const double w11 = scale * a11 * a11;
  const double w12 = scale * a11 * a21;
  const double w22 = scale * (a21 * a21 + a22 * a22);
  const double tau = rows.tau()[j];
  const double c1 = rows.c1()[j];
  const double c2 = rows.c2()[j];
  rows.m1()[j] = tau * w11;
  rows.m2()[j] = tau * w12;
  rows.k1()[j] = c1 * w11 + c2 * w12;
  rows.k2()[j] = c1 * w12 + c2 * w22;
  rows.l11()[j] = scale * tau * a11;
  rows.l21()[j] = scale * (c1 * a11 + c2 * a21);
  rows.l22()[j] = scale * c2 * a22;
}

void read_limit(Index j, LaneRows& rows) {
  rows.m1()[j] = rows.tau()[j];
  rows.k1()[j] = rows.c1()[j];
  rows.k2()[j] = rows.c2()[j];
}

}  // namespace

void draw_tasks(const LinearRegressionTask& task, const Stream& stream, Index first, Index count,
                double* out) {
  const Index d = task.dim;
  std::vector<std::uint64_t> prompts(static_cast<std::size_t>(count));
  std::iota(prompts.begin(), prompts.end(), static_cast<std::uint64_t>(first));
  const auto size = static_cast<std::size_t>((2 * d + 1) * count);
  fill_normal_sequences(stream.split(0), prompts, {out, size});
  const double s = std::sqrt(task.task_variance);
  for (Index j = 0; j < d * count; ++j) out[j] *= s;
  const double label = query_noise(task);
  for (Index j = 2 * d * count; j < (2 * d + 1) * count; ++j) out[j] *= label;
  if (task.features == Features::gaussian) return;
  std::vector<double> token(static_cast<std::size_t>((d + 1) * count));
  fill_token_lanes(task.features, d, 1, stream.split(2), prompts, token);
  std::copy_n(token.begin(), d * count, out + d * count);
}

RegressionDraw draw_task(const RegressionSampler& sampler, const Stream& stream, Index prompt) {
  const Index d = sampler.task.dim;
  Vector drawn(2 * d + 1);
  draw_tasks(sampler.task, stream, prompt, 1, drawn.data());
  const Vector x = sampler.Fq * drawn.segment(d, d);
  return {drawn.head(d), x, drawn.head(d).dot(x) + drawn(2 * d)};
}

double sampled_lanes(const LaneBatch& batch, const Stream& stream, Index first, Index count,
                     Matrix& grad_U, Vector& grad_r) {
  const double sigma = std::sqrt(batch.task->noise_variance);
  LaneRows rows(batch.task->dim);
  draw_lanes(*batch.task, stream.split(0), first, count, rows);
  ESSCHER_DISPATCH(lane_directions)(batch, sigma, rows);
  const Stream tokens = stream.split(1);
  if (batch.L.is_infinite()) {
    for (Index j = 0; j < count; ++j) read_limit(j, rows);
  } else if (batch.kind == ModelKind::linear) {
    for (Index j = 0; j < count; ++j) read_gram(tokens, first + j, batch.L.count(), j, rows);
  } else {
    read_scores(tokens, first, count, batch.L.count(), rows);
  }
  return ESSCHER_DISPATCH(lane_gradient)(batch, sigma, rows, grad_U, grad_r);
}

}  // namespace esscher
#endif
