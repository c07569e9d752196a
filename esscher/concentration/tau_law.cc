#include "esscher/concentration/tau_law.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <type_traits>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/base/svd.h"

namespace esscher {
namespace {

using Complex = std::complex<double>;

// The trapezoidal rule on the contour. With one degree of freedom the branch point lies 1.06
// natural widths away, so the step 0.14 leaves an error of e^{-47}, before the products of forms.
// The integrand falls like e^{-y^2/3}.
constexpr double kContourStep = 0.14;
constexpr double kContourEnd = 10.6;
// The rule in v, with rho = c/k sinh(k y) and y = log(1 + exp(v - e^{-v})). It is doubly
// exponential at 0 and has nearly equal steps up to rho ~ 16 c, where errors of long prompts turn
// from e^{tau^2}/L to frozen; beyond, steps are wider.
constexpr double kRuleStep = 0.08;
constexpr double kShiftedStep = 0.05;  // a mean of the queries makes the density narrower
constexpr double kRuleStart = -3.7;
constexpr double kStretch = 1.0 / 16;
// The Gaussian tail is kept down to e^-37, the rounding of double, or to e^-48, because at L =
// 10^15 and large lambda the average itself may be e^-35 of the bulk of its integrand, or less.
constexpr double kTailExponent = 85;

}  // namespace

TauLaw::TauLaw(const MatrixView& A, const VectorView& m, const MatrixView& S) : m_(m) {
  check_dimension("TauLaw", "m", m.size(), A.rows());
  check_dimension("TauLaw", "S", S.rows(), A.rows());
  const Matrix root = psd_sqrt("TauLaw", "A", A);
  const Matrix F = psd_factor("TauLaw", "S", S);
  const Svd system = svd(root * F);
  const Index r = F.cols(), values = system.s.size();
  const Vector y = root * m;
  lambda_i_ = Vector::Zero(r);
  shift_ = Vector::Zero(r);
  F_ = F * system.V;
  const double floor = values > 0 ? 1e-14 * system.s[0] : 0;
  c0_ = y.squaredNorm();
  for (Index i = 0; i < values; ++i) {
    const double sigma = system.s[i];
    if (sigma <= floor || sigma == 0) continue;
    lambda_i_[i] = sigma * sigma;
    const double along = system.U.col(i).dot(y);
    shift_[i] = along / sigma;
    c0_ -= along * along;
  }
  c0_ = c0_ > 1e-13 * y.squaredNorm() ? c0_ : 0;
  lambda_ = r > 0 ? lambda_i_.maxCoeff() : 0;
}

double TauLaw::mean() const {
  return c0_ + (lambda_i_.array() * (1 + shift_.array().square())).sum();
}

namespace {

// Sum of log w_i, on the branch that is continuous along the contour. Logarithms take longer than
// anything else here, so it is the logarithm of products of up to kFactors numbers.
class LogProduct {
 public:
  // The contour does not meet the cut w <= 0. With Im s >= 0 every argument lies in (-pi, 0], so the
  // product turns clockwise by less than half a turn at a time and has crossed the cut if its
  // imaginary part becomes positive.
  void multiply(Complex w) {
    const double size = std::abs(w.real()) + std::abs(w.imag());
    const bool extreme = !(size > 1e-36 && size < 1e36);
    if (extreme) flush();
    const Complex next(product_.real() * w.real() - product_.imag() * w.imag(),
                       product_.real() * w.imag() + product_.imag() * w.real());
    if (product_.imag() <= 0 && next.imag() > 0) turns_ += 1;
    product_ = next;
    if (extreme || ++factors_ == kFactors) flush();
  }
  Complex sum() {
    flush();
    return sum_;
  }

 private:
  static constexpr int kFactors = 8;  // of size 1e-36 to 1e36, so products stay in range

  void flush() {
    // On the cut itself the argument is -pi, because the product comes from below.
    if (product_.imag() == 0) product_ = Complex(product_.real(), -0.0);
    sum_ += std::log(product_) - Complex(0, 2 * std::numbers::pi * turns_);
    product_ = 1;
    factors_ = turns_ = 0;
  }

  Complex product_ = 1, sum_ = 0;
  int factors_ = 0, turns_ = 0;
};

}  // namespace

template <class Scalar>
Scalar TauLaw::log_mgf(Scalar s) const {
  if constexpr (std::is_same_v<Scalar, Complex>) {
    if (s.imag() < 0) return std::conj(log_mgf(std::conj(s)));
  }
  LogProduct logarithms;
  Scalar sum(0);
  for (Index i = 0; i < lambda_i_.size(); ++i) {
    if (lambda_i_[i] == 0) continue;
    const Scalar w = 1.0 - 2.0 * lambda_i_[i] * s;
    logarithms.multiply(w);
    if (shift_[i] != 0) sum += s * (lambda_i_[i] * shift_[i] * shift_[i]) / w;
  }
  if constexpr (std::is_same_v<Scalar, Complex>) {
    return sum - 0.5 * logarithms.sum();
  } else {
    return sum - 0.5 * logarithms.sum().real();
  }
}

TauLaw::Cumulants TauLaw::cumulants(double s) const {
  Cumulants c{0, 0, 0};
  for (Index i = 0; i < lambda_i_.size(); ++i) {
    const double w = lambda_i_[i] / (1 - 2 * lambda_i_[i] * s);
    const double e = lambda_i_[i] == 0 ? 0 : shift_[i] * shift_[i] / (1 - 2 * lambda_i_[i] * s);
    c.K1 += w * (1 + e);
    c.K2 += 2 * w * w * (1 + 2 * e);
    c.K3 += 8 * w * w * w * (1 + 3 * e);
  }
  return c;
}

double TauLaw::saddle(double t, double pole) const {
  // 1 - 2 lambda s = e^-v is increasing in v and covers the whole domain; with a pole s > 0, i.e. v
  // > 0.
  double lo = pole > 0 ? 0 : -700, hi = 700;
  for (int i = 0; i < 200 && hi - lo > 1e-13 * (1 + std::abs(lo)); ++i) {
    const double v = (lo + hi) / 2;
    const double s = -std::expm1(-v) / (2 * lambda_);
    const double slope = cumulants(s).K1 - (pole > 0 ? pole / s : 0);
    // Close to the end of the domain s rounds to the end and the slope to infinity, which still
    // means "too far".
    (slope < t ? lo : hi) = v;
  }
  return -std::expm1(-(lo + hi) / 2) / (2 * lambda_);
}

template <class Scalar>
QuadraticMoments<Scalar> TauLaw::tilted(const std::vector<Matrix>& forms, Scalar s) const {
  const Index r = lambda_i_.size();
  VectorOf<Scalar> sigma(r + 1), mu(r + 1);
  sigma[0] = 0;  // the coordinate that carries the mean m
  mu[0] = 1;
  for (Index i = 0; i < r; ++i) {
    sigma[i + 1] = 1.0 / (1.0 - 2.0 * lambda_i_[i] * s);
    mu[i + 1] = 2.0 * s * (lambda_i_[i] * shift_[i]) * sigma[i + 1];
  }
  if (m_.isZero(0)) mu[0] = 0;
  return QuadraticMoments<Scalar>(forms, sigma, mu);
}

std::vector<Matrix> TauLaw::in_basis(const std::vector<Matrix>& forms) const {
  Matrix basis(F_.rows(), F_.cols() + 1);
  basis.col(0) = m_;
  basis.rightCols(F_.cols()) = F_;
  std::vector<Matrix> result;
  for (const Matrix& N : forms) {
    check_dimension("TauLaw", "form", N.rows(), m_.size());
    result.push_back(basis.transpose() * (0.5 * (N + N.transpose())) * basis);
  }
  return result;
}

double TauLaw::tilted_moment(const std::vector<Matrix>& forms, const FormProduct& product,
                             double theta) const {
  if (2 * theta * lambda_ >= 1) return std::numeric_limits<double>::infinity();
  const auto local = in_basis(forms);
  return std::exp(theta * c0_ + log_mgf(theta)) * tilted(local, theta).expect(product);
}

double TauLaw::tail(double t) const {
  const double x = t - c0_;
  if (x < 0 || lambda_ == 0) return x < 0 ? 1 : 0;
  if (x == 0) return 1;
  const double s0 = saddle(x, 1.0);
  const Cumulants c = cumulants(s0);
  const double width = 1 / std::sqrt(c.K2 + 1 / (s0 * s0));
  const double bend = 2 * lambda_ / (3 * (1 - 2 * lambda_ * s0));
  double sum = 0;
  for (int k = 0; k < 4000; ++k) {
    const double eta = kContourStep * k * width;
    const Complex s(s0 + bend * eta * eta, eta);
    const Complex value = std::exp(log_mgf(s) - s * x) / s * Complex(1, -2 * bend * eta);
    sum += value.real() * (k == 0 ? 0.5 : 1.0);
    if (std::abs(value) < 1e-17 * std::abs(sum)) break;
  }
  return std::clamp(sum * kContourStep * width / std::numbers::pi, 0.0, 1.0);
}

void TauLaw::density(double t, const std::vector<Matrix>& forms,
                     const std::vector<FormProduct>& products, Eigen::Ref<Vector> out) const {
  const double s0 = saddle(t, 0);
  const Cumulants c = cumulants(s0);
  const double width = 1 / std::sqrt(c.K2);
  const double bend = c.K3 / (6 * c.K2);
  const double top = log_mgf(s0) - s0 * t;
  out.setZero();
  for (int k = 0; kContourStep * k <= kContourEnd; ++k) {
    const double eta = kContourStep * k * width;
    const Complex s(s0 + bend * eta * eta, eta);
    const Complex value = std::exp(log_mgf(s) - s * t - top) * Complex(1, -2 * bend * eta);
    const QuadraticMoments<Complex> moments = tilted(forms, s);
    for (std::size_t j = 0; j < products.size(); ++j) {
      const double term = (value * moments.expect(products[j])).real();
      out[static_cast<Index>(j)] += k == 0 ? 0.5 * term : term;
    }
  }
  out *= std::exp(top) * kContourStep * width / std::numbers::pi;
}

Vector TauLaw::relative_size(const Matrix& weights) {
  const Eigen::RowVectorXd largest =
      weights.cwiseAbs().colwise().maxCoeff().cwiseMax(std::numeric_limits<double>::min());
  return (weights.cwiseAbs().array().rowwise() / largest.array()).rowwise().maxCoeff();
}

TauLaw::Rule TauLaw::rule(const std::vector<Matrix>& forms,
                          const std::vector<FormProduct>& products) const {
  const auto local = in_basis(forms);
  const Index P = static_cast<Index>(products.size());
  Rule result;
  if (lambda_ == 0) {  // tau is a constant
    result.tau = Vector::Constant(1, std::sqrt(c0_));
    result.weights.resize(1, P);
    const auto moments = tilted(local, 0.0);
    for (Index j = 0; j < P; ++j) {
      result.weights(0, j) = moments.expect(products[static_cast<std::size_t>(j)]);
    }
    return result;
  }
  // In rho = sqrt(tau^2 - c0): E[P f] = int f g_P(c0 + rho^2) 2 rho drho.
  const Cumulants at0 = cumulants(0);
  const double typical = std::sqrt(at0.K1);
  const double spread =
      std::sqrt(at0.K2) / (2 * typical);  // standard deviation of rho, to first order
  const double c = std::min(1.0, typical);
  const double last = std::sqrt(2 * lambda_ * kTailExponent) + typical;
  const double step = m_.isZero(0) ? kRuleStep : kShiftedStep;
  const double h = std::min(step, 0.5 * spread / std::hypot(c, kStretch * typical));
  const double end = std::asinh(kStretch * last / c) / kStretch + 1;
  const Index n = static_cast<Index>((end - kRuleStart) / h) + 1;
  Vector tau(n);
  Matrix weights(n, P);
  parallel_for(n, [&](std::int64_t k) {
    const double v = kRuleStart + h * static_cast<double>(k);
    const double w = v - std::exp(-v);
    const double y = w > 30 ? w : std::log1p(std::exp(w));
    const double rho = c / kStretch * std::sinh(kStretch * y);
    const double drho = c * std::cosh(kStretch * y) / (1 + std::exp(-w)) * (1 + std::exp(-v));
    Vector g(P);
    density(rho * rho, local, products, g);
    tau[k] = std::sqrt(c0_ + rho * rho);
    weights.row(k) = g.transpose() * (2 * rho * drho * h);
  });
  // Nodes that cannot change a double are dropped. On the left errors only get smaller with tau; on
  // the right they may be 10^15 times as large as at the mode.
  const Vector size = relative_size(weights);
  Index mode = 0;
  const double top = size.maxCoeff(&mode);
  std::vector<Index> keep;
  for (Index k = 0; k < n; ++k) {
    if (size[k] > top * (k < mode ? 1e-16 : 1e-32)) keep.push_back(k);
  }
  result.tau = tau(keep);
  result.weights = weights(keep, Eigen::all);
  return result;
}

}  // namespace esscher
