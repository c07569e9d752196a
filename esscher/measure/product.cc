#include "esscher/measure/product.h"

#include <algorithm>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/check.h"

namespace esscher {
namespace {

// Calls f(block, first coordinate) for each block.
template <class F>
void for_each_block(const std::vector<AnyMeasure>& blocks, const F& f) {
  Index first = 0;
  for (const AnyMeasure& block : blocks) {
    f(block, first);
    first += block.dim();
  }
}

}  // namespace

Product::Product(std::vector<AnyMeasure> blocks) : blocks_(std::move(blocks)) {
  if (blocks_.empty()) throw_argument("product", "blocks", "empty", "at least one measure");
  for (const AnyMeasure& block : blocks_) dim_ += block.dim();
}

Vector Product::mean() const {
  Vector out(dim_);
  for_each_block(blocks_, [&](const AnyMeasure& block, Index first) {
    out.segment(first, block.dim()) = block.mean();
  });
  return out;
}

Matrix Product::second_moment() const {
  const Vector m = mean();
  Matrix out = m * m.transpose();
  for_each_block(blocks_, [&](const AnyMeasure& block, Index first) {
    out.block(first, first, block.dim(), block.dim()) = block.second_moment();
  });
  return out;
}

double Product::log_mgf(const VectorView& a) const {
  check_tilt("product", a, dim_);
  double sum = 0;
  for_each_block(blocks_, [&](const AnyMeasure& block, Index first) {
    sum += block.log_mgf(a.segment(first, block.dim()));
  });
  return sum;
}

double Product::centred_log_mgf(const VectorView& a) const {
  check_tilt("product", a, dim_);
  double sum = 0;
  for_each_block(blocks_, [&](const AnyMeasure& block, Index first) {
    sum += block.centred_log_mgf(a.segment(first, block.dim()));
  });
  return sum;
}

Vector Product::tilted_mean(const VectorView& a) const {
  check_tilt("product", a, dim_);
  Vector out(dim_);
  for_each_block(blocks_, [&](const AnyMeasure& block, Index first) {
    out.segment(first, block.dim()) = block.tilted_mean(a.segment(first, block.dim()));
  });
  return out;
}

Vector Product::mean_shift(const VectorView& a) const {
  check_tilt("product", a, dim_);
  Vector out(dim_);
  for_each_block(blocks_, [&](const AnyMeasure& block, Index first) {
    out.segment(first, block.dim()) = block.mean_shift(a.segment(first, block.dim()));
  });
  return out;
}

Matrix Product::tilted_cov(const VectorView& a) const {
  check_tilt("product", a, dim_);
  Matrix out = Matrix::Zero(dim_, dim_);
  for_each_block(blocks_, [&](const AnyMeasure& block, Index first) {
    out.block(first, first, block.dim(), block.dim()) =
        block.tilted_cov(a.segment(first, block.dim()));
  });
  return out;
}

Vector Product::tilted_cov_times(const VectorView& a, const VectorView& v) const {
  check_tilt("product", a, dim_);
  check_dimension("product", "v", v.size(), dim_);
  Vector out(dim_);
  for_each_block(blocks_, [&](const AnyMeasure& block, Index first) {
    out.segment(first, block.dim()) =
        block.tilted_cov_times(a.segment(first, block.dim()), v.segment(first, block.dim()));
  });
  return out;
}

HigherCumulants Product::higher_cumulants(const VectorView& a, const MatrixView& W,
                                          const MatrixView& Y) const {
  check_tilt("product", a, dim_);
  HigherCumulants out = no_higher_cumulants(dim_);
  for_each_block(blocks_, [&](const AnyMeasure& block, Index first) {
    const Index n = block.dim();
    const HigherCumulants part = block.higher_cumulants(
        a.segment(first, n), W.block(first, first, n, n), Y.block(first, first, n, n));
    out.third_w.segment(first, n) = part.third_w;
    out.third_y.segment(first, n) = part.third_y;
    out.fourth += part.fourth;
  });
  return out;
}

Empirical Product::sample(const Stream& stream, Index n) const {
  check_sample_size("product", n);
  Matrix tokens(n, dim_);
  std::uint64_t child = 0;
  for_each_block(blocks_, [&](const AnyMeasure& block, Index first) {
    tokens.middleCols(first, block.dim()) = block.sample(stream.split(child++), n).tokens();
  });
  return Empirical(std::move(tokens));
}

double Product::sub_gaussian() const {
  double largest = 0;
  for (const AnyMeasure& block : blocks_) largest = std::max(largest, block.sub_gaussian());
  return largest;
}

bool Product::strictly_sub_gaussian() const {
  return std::all_of(blocks_.begin(), blocks_.end(),
                     [](const AnyMeasure& block) { return block.strictly_sub_gaussian(); });
}

}  // namespace esscher
