// Measures with d iid coordinates; Lambda, m_a, C_a act on each coordinate alone.
//
// In one coordinate, with sigma the sub-Gaussian constant:
//
//               law            Lambda(a)         m_a               C_a                 sigma
//   Rademacher  +-1            log cosh a        tanh a            sech^2 a            1
//   Uniform     on [-1,1]      log(sinh a / a)   coth a - 1/a      1/a^2 - 1/sinh^2 a  1/sqrt(3)
//   Laplace(b)  e^{-|x|/b}/2b  -log(1 - b^2a^2)  2b^2a/(1-b^2a^2)  m_a' (derivative)   infinite
//
// Laplace needs |a_i| < 1/b in every coordinate; it throws a DomainError otherwise.
#pragma once

#include "esscher/measure/measure.h"

namespace esscher {

// The members that all measures with iid coordinates share. Coordinate has log_mgf, mean, variance,
// the third and fourth cumulants and draw(stream, i), where i = l*d + j addresses coordinate j of
// token l.
template <class Coordinate>
class IidCoordinates {
 public:
  [[nodiscard]] Index dim() const { return dim_; }
  [[nodiscard]] Length cardinality() const { return Length::infinity(); }
  [[nodiscard]] Vector mean() const { return Vector::Zero(dim_); }
  [[nodiscard]] Matrix second_moment() const;
  [[nodiscard]] double log_mgf(const VectorView& a) const;
  [[nodiscard]] double centred_log_mgf(const VectorView& a) const { return log_mgf(a); }
  [[nodiscard]] Vector tilted_mean(const VectorView& a) const;
  [[nodiscard]] Vector mean_shift(const VectorView& a) const { return tilted_mean(a); }
  [[nodiscard]] Matrix tilted_cov(const VectorView& a) const;
  [[nodiscard]] Vector tilted_cov_times(const VectorView& a, const VectorView& v) const;
  [[nodiscard]] HigherCumulants higher_cumulants(const VectorView& a, const MatrixView& W,
                                                 const MatrixView& Y) const;
  [[nodiscard]] Empirical sample(const Stream& stream, Index n) const;
  [[nodiscard]] double sub_gaussian() const;
  [[nodiscard]] bool strictly_sub_gaussian() const { return Coordinate::kStrict; }
  [[nodiscard]] std::string name() const { return Coordinate::kName; }

 protected:
  IidCoordinates(Index dim, Coordinate coordinate);
  [[nodiscard]] const Coordinate& coordinate() const { return coordinate_; }

 private:
  void check(const VectorView& a) const;
  [[nodiscard]] Vector variances(const VectorView& a) const;

  Index dim_;
  Coordinate coordinate_;
};

struct RademacherCoordinate {
  static constexpr const char* kName = "rademacher";
  static constexpr bool kStrict = true;
  [[nodiscard]] double bound() const;
  [[nodiscard]] double log_mgf(double a) const;
  [[nodiscard]] double mean(double a) const;
  [[nodiscard]] double variance(double a) const;
  [[nodiscard]] double third(double a) const;
  [[nodiscard]] double fourth(double a) const;
  [[nodiscard]] double draw(const Stream& stream, std::uint64_t i) const;
};

struct UniformCoordinate {
  static constexpr const char* kName = "uniform";
  static constexpr bool kStrict = true;
  [[nodiscard]] double bound() const;
  [[nodiscard]] double log_mgf(double a) const;
  [[nodiscard]] double mean(double a) const;
  [[nodiscard]] double variance(double a) const;
  [[nodiscard]] double third(double a) const;
  [[nodiscard]] double fourth(double a) const;
  [[nodiscard]] double draw(const Stream& stream, std::uint64_t i) const;
};

struct LaplaceCoordinate {
  static constexpr const char* kName = "laplace";
  static constexpr bool kStrict = false;
  double b = 1;
  // Lambda is finite for |a| < bound().
  [[nodiscard]] double bound() const { return 1 / b; }
  [[nodiscard]] double log_mgf(double a) const;
  [[nodiscard]] double mean(double a) const;
  [[nodiscard]] double variance(double a) const;
  [[nodiscard]] double third(double a) const;
  [[nodiscard]] double fourth(double a) const;
  [[nodiscard]] double draw(const Stream& stream, std::uint64_t i) const;
};

extern template class IidCoordinates<RademacherCoordinate>;
extern template class IidCoordinates<UniformCoordinate>;
extern template class IidCoordinates<LaplaceCoordinate>;

class Rademacher : public IidCoordinates<RademacherCoordinate> {
 public:
  explicit Rademacher(Index dim);
};

class Uniform : public IidCoordinates<UniformCoordinate> {
 public:
  explicit Uniform(Index dim);
};

class Laplace : public IidCoordinates<LaplaceCoordinate> {
 public:
  // Scale b > 0; variance 2 b^2.
  Laplace(Index dim, double b);
  [[nodiscard]] double b() const { return coordinate().b; }
};

}  // namespace esscher
