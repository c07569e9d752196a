#include "esscher/paper/feature_gaps.h"

#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <numbers>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/score_law.h"
#include "esscher/measure/sphere.h"
#include "esscher/prompt/exact_prompt.h"

namespace esscher::paper {
namespace {

constexpr double kStep = 2e-3;      // of central differences
constexpr double kTimeStep = 0.05;  // of the flow, whose rates are below 10

template <unsigned N>
PanelRule legendre() {
  using Gauss = boost::math::quadrature::gauss<double, N>;
  std::vector<double> x, w;
  for (std::size_t i = 0; i < Gauss::abscissa().size(); ++i) {
    for (const int sign : {-1, 1}) {
      if (Gauss::abscissa()[i] == 0 && sign > 0) continue;
      x.push_back(sign * Gauss::abscissa()[i]);
      w.push_back(Gauss::weights()[i] / 2);
    }
  }
  const auto n = static_cast<Index>(x.size());
  return {Eigen::Map<const Vector>(x.data(), n), Eigen::Map<const Vector>(w.data(), n)};
}

// Weights sum to 1.
PanelRule legendre(int n) {
  switch (n) {
    case 3: return legendre<3>();
    case 4: return legendre<4>();
    case 5: return legendre<5>();
    case 6: return legendre<6>();
    default: throw_argument("feature gaps", "nodes", std::to_string(n), "4, 5 or 6");
  }
}

PanelRule two_signs() { return {Vector{{-1.0, 1.0}}, Vector{{0.5, 0.5}}}; }

// All points of d coordinates.
Matrix product_points(const PanelRule& axis, Index d, Vector& weights) {
  Index n = 1;
  for (Index k = 0; k < d; ++k) n *= axis.x.size();
  Matrix points(n, d);
  weights = Vector::Ones(n);
  for (Index i = 0; i < n; ++i) {
    for (Index k = 0, rest = i; k < d; ++k, rest /= axis.x.size()) {
      const Index at = rest % axis.x.size();
      points(i, k) = axis.x[at];
      weights[i] *= axis.w[at];
    }
  }
  return points;
}

// Heights and angles on the sphere of radius sqrt d.
Matrix sphere_points(Index d, int nodes, Vector& weights) {
  const Index turns = d == 2 ? 6 * nodes : 2 * nodes;
  const PanelRule height = d == 2 ? PanelRule{Vector::Zero(1), Vector::Ones(1)} : legendre(nodes);
  Matrix points(height.x.size() * turns, d);
  weights.resize(points.rows());
  const double radius = std::sqrt(static_cast<double>(d));
  for (Index i = 0; i < points.rows(); ++i) {
    const double h = height.x[i / turns], ring = std::sqrt(1 - h * h);
    const double angle =
        2 * std::numbers::pi * (static_cast<double>(i % turns) + 0.25) / static_cast<double>(turns);
    points(i, 0) = radius * ring * std::cos(angle);
    points(i, 1) = radius * ring * std::sin(angle);
    if (d == 3) points(i, 2) = radius * h;
    weights[i] = height.w[i / turns] / static_cast<double>(turns);
  }
  return points;
}

AnyMeasure feature_law(Features features, const Matrix& root) {
  const Index d = root.rows();
  const Vector none = Vector::Zero(d);
  switch (features) {
    case Features::rademacher: return Affine(none, root, Rademacher(d));
    case Features::uniform: return Affine(none, std::sqrt(3.0) * root, Uniform(d));
    case Features::sphere: return Affine(none, root, Sphere(d, std::sqrt(static_cast<double>(d))));
    case Features::gaussian: break;
  }
  throw_argument("feature gaps", "features", "gaussian", "features that are not Gaussian");
}

}  // namespace

FeatureGaps::FeatureGaps(const LinearRegressionTask& task, int nodes)
    : d_(task.dim),
      root_(psd_sqrt("feature gaps", "prompt_cov", task.prompt_cov)),
      law_(feature_law(task.features, root_)),
      atoms_(task.features == Features::rademacher),
      fine_(queries(task.features, nodes)),
      coarse_(atoms_ ? fine_ : queries(task.features, nodes - 1)) {
  const bool same = task.query_cov == task.prompt_cov && task.noise_variance == 0 &&
                    task.task_variance == 1 &&
                    task.prompt_cov.isApprox(task.prompt_cov.reverse(), 1e-14);
  if ((d_ != 2 && d_ != 3) || !same) {
    throw CapabilityError("feature gaps: noise-free tasks of dimension 2 or 3 are served");
  }
}

// -x contributes what x does, so that half of the points are enough.
FeatureGaps::Queries FeatureGaps::queries(Features features, int nodes) const {
  Vector w;
  Matrix xi;
  if (features == Features::sphere) {
    xi = sphere_points(d_, nodes, w);
  } else if (features == Features::rademacher) {
    xi = product_points(two_signs(), d_, w);
  } else {
    xi = std::sqrt(3.0) * product_points(legendre(nodes), d_, w);
  }
  const Vector side = xi * Vector{{1.0, 0.01, 0.0001}}.head(d_);
  Queries out{Matrix(xi.rows(), d_), Vector(xi.rows())};
  Index n = 0;
  for (Index i = 0; i < xi.rows(); ++i) {
    if (side[i] < -1e-12) continue;
    out.x.row(n) = xi.row(i) * root_;
    out.w[n++] = side[i] > 1e-12 ? 2 * w[i] : w[i];
  }
  out.x.conservativeResize(n, d_);
  out.w.conservativeResize(n);
  return out;
}

Vector FeatureGaps::limit_gradient(const Vector& theta) const {
  const Matrix A = Eigen::Map<const Matrix>(theta.data(), d_, d_);
  const double b = theta[d_ * d_];
  Matrix by_A = Matrix::Zero(d_, d_);
  double by_b = 0;
  for (Index i = 0; i < fine_.x.rows(); ++i) {
    const Vector x = fine_.x.row(i).transpose(), a = A * x, m = law_.tilted_mean(a), e = b * m - x;
    by_A += fine_.w[i] * b * (law_.tilted_cov(a) * e) * x.transpose();
    by_b += fine_.w[i] * m.dot(e);
  }
  Vector out(theta.size());
  out << Eigen::Map<const Vector>(by_A.data(), d_ * d_), by_b;
  return out;
}

Vector FeatureGaps::path(double alpha, double t) const {
  const Matrix A = alpha / std::sqrt(static_cast<double>(d_)) * Matrix::Identity(d_, d_);
  Vector theta(d_ * d_ + 1);
  theta << Eigen::Map<const Vector>(A.data(), d_ * d_), alpha;
  const double steps = std::max(20.0, std::ceil(t / kTimeStep)), h = t / steps;
  for (double i = 0; i < steps; ++i) {  // the classical rule of Runge and Kutta
    const Vector k1 = -limit_gradient(theta);
    const Vector k2 = -limit_gradient(theta + h / 2 * k1);
    const Vector k3 = -limit_gradient(theta + h / 2 * k2);
    const Vector k4 = -limit_gradient(theta + h * k3);
    theta += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
  }
  return theta;
}

Vector FeatureGaps::differences(const Queries& at, const Matrix& A, double b,
                                const std::vector<std::int64_t>& lengths) const {
  const Attention attention = Attention::from_uv(A, b * Matrix::Identity(d_, d_));
  Vector out = Vector::Zero(static_cast<Index>(lengths.size()));
  for (Index i = 0; i < at.x.rows(); ++i) {
    const Vector x = at.x.row(i).transpose();
    ExactPrompt exact(Prompt::plain(law_), attention, x);
    const Vector limit = exact.expected_output(Length::infinity());
    for (std::size_t l = 0; l < lengths.size(); ++l) {
      const Length L(lengths[l]);
      const double square = exact.error_parts(Metric::output, L).total();
      const double cross = (exact.expected_output(L) - limit).dot(limit - x);
      out[static_cast<Index>(l)] += at.w[i] * (square + 2 * cross) / 2;
    }
  }
  return out;
}

// Entries of A that are the same read backwards have one derivative.
Vector FeatureGaps::gap_norms(const Queries& at, const Vector& theta,
                              const std::vector<std::int64_t>& lengths) const {
  const Matrix A = Eigen::Map<const Matrix>(theta.data(), d_, d_);
  const double b = theta[d_ * d_];
  const auto slope = [&](const Matrix& dA, double db) {
    return Vector(
        (differences(at, A + dA, b + db, lengths) - differences(at, A - dA, b - db, lengths)) /
        (2 * kStep));
  };
  Vector square = slope(Matrix::Zero(d_, d_), kStep).cwiseAbs2();
  for (Index k = 0; 2 * k < d_ * d_; ++k) {
    const Index mirror = d_ * d_ - 1 - k;
    Matrix dA = Matrix::Zero(d_, d_);
    dA(k / d_, k % d_) = dA(mirror / d_, mirror % d_) = kStep;
    square += slope(dA, 0).cwiseAbs2() / (mirror == k ? 1 : 2);
  }
  return square.cwiseSqrt();
}

std::vector<FeatureGap> FeatureGaps::gaps(const Vector& theta,
                                          const std::vector<std::int64_t>& lengths) const {
  const Vector fine = gap_norms(fine_, theta, lengths);
  const Vector coarse = atoms_ ? fine : gap_norms(coarse_, theta, lengths);
  std::vector<FeatureGap> out;
  for (std::size_t l = 0; l < lengths.size(); ++l) {
    const auto i = static_cast<Index>(l);
    out.push_back({.L = lengths[l], .gap = fine[i], .error = std::abs(fine[i] - coarse[i])});
  }
  return out;
}

}  // namespace esscher::paper
