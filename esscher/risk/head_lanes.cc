#include "esscher/risk/detail/head_lanes.h"

#include <algorithm>
#include <cmath>

#include "esscher/random/wishart.h"
#include "esscher/simd/detail/dispatch.h"
#include "esscher/simd/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/risk/head_lanes.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After foreach_target.h, so that each target gets its own body.
#include "esscher/risk/lane_answers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using DD = hn::ScalableTag<double>;
using VD = hn::Vec<DD>;

// w becomes w~, label noise becomes the target, tilts U_h n become a~_h, reads are filled.
void head_directions(const LaneBatch& batch, HeadRows& rows) {
  const DD dd;
  const Index d = rows.dim();
  const double sigma = std::sqrt(batch.task->noise_variance);
  const auto c = [&](double x) HWY_ATTR { return hn::Set(dd, x); };
  for (Index o = 0; o < kTrainLanes; o += static_cast<Index>(hn::Lanes(dd))) {
    const auto at = [&](double* row) HWY_ATTR { return hn::LoadU(dd, row + o); };
    const auto put = [&](VD v, double* row) HWY_ATTR { hn::StoreU(v, dd, row + o); };
    add_answers(dd, batch, d, o, rows);
    for (Index i = 0; i < d; ++i) put(at(rows.work(i)), rows.w(i));
    for (Index h = 0; h < rows.heads(); ++h) {
      const double* r = batch.r->data() + h * (d + 1);
      const VD a_y = at(rows.tilt(h, d));
      for (Index i = 0; i < d; ++i) {
        const VD w = at(rows.w(i));
        put(hn::MulAdd(a_y, w, at(rows.tilt(h, i))), rows.tilt(h, i));
        put(hn::MulAdd(c(r[d]), w, c(r[i])), rows.read(h, i));
      }
      put(hn::Mul(c(sigma), a_y), rows.tilt(h, d));
      put(c(sigma * r[d]), rows.read(h, d));
    }
  }
}

// Turns mean and product of a head into tokens (u_x, w~'u_x + sig u_y) times g.
HWY_INLINE void answers_to_tokens(double sigma, Index h, Index o, VD g, HeadRows& rows) {
  const DD dd;
  const Index d = rows.dim();
  const auto at = [&](double* row) HWY_ATTR { return hn::LoadU(dd, row + o); };
  VD mean_y = hn::Mul(hn::Set(dd, sigma), hn::Mul(g, at(rows.mean(h, d))));
  VD product_y = hn::Mul(hn::Set(dd, sigma), hn::Mul(g, at(rows.product(h, d))));
  for (Index i = 0; i < d; ++i) {
    const VD w = at(rows.w(i));
    const VD mean = hn::Mul(g, at(rows.mean(h, i)));
    const VD product = hn::Mul(g, at(rows.product(h, i)));
    mean_y = hn::MulAdd(w, mean, mean_y);
    product_y = hn::MulAdd(w, product, product_y);
    hn::StoreU(mean, dd, rows.mean(h, i) + o);
    hn::StoreU(product, dd, rows.product(h, i) + o);
  }
  hn::StoreU(mean_y, dd, rows.mean(h, d) + o);
  hn::StoreU(product_y, dd, rows.product(h, d) + o);
}

// Returns the loss, turns means and products into the tokens of the gradient, and adds the means to
// grad_r.
double head_gradients(const LaneBatch& batch, HeadRows& rows, Vector& grad_r) {
  const DD dd;
  const Index d = rows.dim();
  const double sigma = std::sqrt(batch.task->noise_variance);
  VD loss = hn::Zero(dd);
  for (Index o = 0; o < kTrainLanes; o += static_cast<Index>(hn::Lanes(dd))) {
    const auto at = [&](double* row) HWY_ATTR { return hn::LoadU(dd, row + o); };
    VD residual = hn::Neg(at(rows.y()));
    for (Index h = 0; h < rows.heads(); ++h) {
      for (Index i = 0; i <= d; ++i) {
        residual = hn::MulAdd(at(rows.read(h, i)), at(rows.mean(h, i)), residual);
      }
    }
    residual = hn::Mul(residual, at(rows.used()));
    loss = hn::MulAdd(residual, residual, loss);
    const VD g = hn::Mul(hn::Set(dd, batch.residual_factor), residual);
    for (Index h = 0; h < rows.heads(); ++h) answers_to_tokens(sigma, h, o, g, rows);
  }
  for (Index i = 0; i < grad_r.size(); ++i) {
    VD sum = hn::Zero(dd);
    for (Index o = 0; o < kTrainLanes; o += static_cast<Index>(hn::Lanes(dd))) {
      sum = hn::Add(sum, hn::LoadU(dd, rows.mean(0, i) + o));
    }
    grad_r(i) += hn::GetLane(hn::SumOfLanes(dd, sum));
  }
  return batch.loss_factor * hn::GetLane(hn::SumOfLanes(dd, loss));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher {

HWY_EXPORT(head_directions);
HWY_EXPORT(head_gradients);

namespace {

// Linear attention on Gaussian tokens reads S = (1/L) sum u u' alone, a Wishart matrix.
void head_grams(std::int64_t L, const Stream& grams, Index first, Index count, HeadRows& rows) {
  const Index D = rows.dim() + 1;
  const double scale = 1 / static_cast<double>(L);
  for (Index j = 0; j < count; ++j) {
    const Matrix A = bartlett_factor(grams.split(static_cast<std::uint64_t>(first + j)), D, L);
    for (Index h = 0; h < rows.heads(); ++h) {
      const auto of_head = [&](HeadRows::Rows all) { return all.col(j).segment(h * D, D); };
      of_head(rows.means()) = scale * (A * (A.transpose() * of_head(rows.tilts()))).eval();
      of_head(rows.products()) = scale * (A * (A.transpose() * of_head(rows.reads()))).eval();
    }
  }
}

}  // namespace

double head_lanes(const LaneBatch& batch, const Stream& stream, Index first, Index count,
                  Matrix& grad_U, Vector& grad_r) {
  const LinearRegressionTask& task = *batch.task;
  HeadRows rows(task.dim, batch.r->size() / (task.dim + 1));
  draw_tasks(task, stream, first, kTrainLanes, rows.w(0));
  std::fill_n(rows.used(), count, 1.0);
  add_product(*batch.U, rows.queries(), rows.tilts());
  ESSCHER_DISPATCH(head_directions)(batch, rows);
  const Stream tokens = stream.split(1);
  if (batch.L.is_infinite()) {
    rows.means() = rows.tilts();
    rows.products() = rows.reads();
  } else if (batch.kind == ModelKind::linear && !batch.draws_tokens) {
    head_grams(batch.L.count(), tokens, first, count, rows);
  } else {
    head_sums({.features = task.features}, batch.kind, batch.L.count(), tokens, first, count, rows);
  }
  const double loss = ESSCHER_DISPATCH(head_gradients)(batch, rows, grad_r);
  add_product(rows.products(), Matrix(rows.queries().transpose()), grad_U);
  return loss;
}

}  // namespace esscher
#endif
