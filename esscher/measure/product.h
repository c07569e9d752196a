// Product of independent blocks: z' = (z_1; ...; z_k), d = sum of the block dimensions.
//
//   Lambda(a) = sum Lambda_k(a_k),  m_a = (m_1; ...; m_k),  C_a block diagonal, sigma = max sigma_k
#pragma once

#include <vector>

#include "esscher/measure/any_measure.h"

namespace esscher {

class Product {
 public:
  // At least one block.
  explicit Product(std::vector<AnyMeasure> blocks);

  [[nodiscard]] const std::vector<AnyMeasure>& blocks() const { return blocks_; }

  [[nodiscard]] Index dim() const { return dim_; }
  [[nodiscard]] Length cardinality() const { return Length::infinity(); }
  [[nodiscard]] Vector mean() const;
  [[nodiscard]] Matrix second_moment() const;
  [[nodiscard]] double log_mgf(const VectorView& a) const;
  [[nodiscard]] double centred_log_mgf(const VectorView& a) const;
  [[nodiscard]] Vector tilted_mean(const VectorView& a) const;
  [[nodiscard]] Vector mean_shift(const VectorView& a) const;
  [[nodiscard]] Matrix tilted_cov(const VectorView& a) const;
  [[nodiscard]] Vector tilted_cov_times(const VectorView& a, const VectorView& v) const;
  [[nodiscard]] HigherCumulants higher_cumulants(const VectorView& a, const MatrixView& W,
                                                 const MatrixView& Y) const;
  // Block k draws from stream.split(k).
  [[nodiscard]] Empirical sample(const Stream& stream, Index n) const;
  [[nodiscard]] double sub_gaussian() const;
  [[nodiscard]] bool strictly_sub_gaussian() const;
  [[nodiscard]] std::string name() const { return "product"; }

 private:
  std::vector<AnyMeasure> blocks_;
  Index dim_ = 0;
};

}  // namespace esscher
