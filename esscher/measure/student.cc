#include "esscher/measure/student.h"

#include <cmath>
#include <span>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/check.h"
#include "esscher/measure/empirical.h"
#include "esscher/random/draws.h"

namespace esscher {

Student::Student(double nu, const VectorView& mean, const MatrixView& cov)
    : nu_(checked_positive("student", "nu", nu)),
      centre_(mean),
      factor_(psd_factor("student", "cov", cov)) {
  checked_dim("student", cov.rows());
  check_dimension("student", "mean", mean.size(), cov.rows());
  check_finite("student", "mean", mean);
  cov_ = 0.5 * (cov + cov.transpose());
}

Student::Student(double nu, const MatrixView& cov) : Student(nu, Vector::Zero(cov.rows()), cov) {}

void Student::check_flat(const VectorView& a) const {
  check_tilt("student", a, dim());
  if ((cov_ * a).isZero(0)) return;
  throw DomainError(
      "student: Lambda(a) is infinite at every tilt a with Ga != 0, because the tails of "
      "nu = " +
      to_text(nu_) + " are polynomial; such prompts have no limit, finite ones are served");
}

Vector Student::mean() const {
  if (nu_ > 1) return centre_;
  throw DomainError("student: nu is " + to_text(nu_) + ", and a mean exists for nu > 1 only");
}

Matrix Student::second_moment() const {
  if (!(nu_ > 2)) {
    throw DomainError("student: nu is " + to_text(nu_) +
                      ", and second moments exist for nu > 2 only");
  }
  return (nu_ / (nu_ - 2)) * cov_ + centre_ * centre_.transpose();
}

double Student::log_mgf(const VectorView& a) const {
  check_flat(a);
  return centre_.dot(a);
}

double Student::centred_log_mgf(const VectorView& a) const {
  check_flat(a);
  return 0;
}

Vector Student::tilted_mean(const VectorView& a) const {
  check_flat(a);
  return mean();
}

Vector Student::mean_shift(const VectorView& a) const {
  check_flat(a);
  return Vector::Zero(dim());
}

Matrix Student::tilted_cov(const VectorView& a) const {
  check_flat(a);
  return second_moment() - centre_ * centre_.transpose();
}

Vector Student::tilted_cov_times(const VectorView& a, const VectorView& v) const {
  check_dimension("student", "v", v.size(), dim());
  return tilted_cov(a) * v;
}

Empirical Student::sample(const Stream& stream, Index n) const {
  check_sample_size("student", n);
  const Stream squares = stream.split(1);
  Matrix normals(n, factor_.cols());
  stream.split(0).fill_normal(
      0, std::span<double>(normals.data(), static_cast<std::size_t>(normals.size())));
  Matrix tokens(n, dim());
  for (Index l = 0; l < n; ++l) {
    const double square = chi_square_draw(squares.split(static_cast<std::uint64_t>(l)), nu_);
    const Vector g = std::sqrt(nu_ / square) * normals.row(l).transpose();
    tokens.row(l) = (centre_ + factor_ * g).transpose();
  }
  return Empirical(std::move(tokens));
}

double Student::sub_gaussian() const { return cov_.isZero(0) ? 0 : HUGE_VAL; }

}  // namespace esscher
