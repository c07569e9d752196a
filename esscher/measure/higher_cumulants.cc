#include "esscher/measure/higher_cumulants.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "esscher/base/eigensystem.h"
#include "esscher/base/error.h"

namespace esscher {
namespace {

constexpr int kHalvings = 8;      // of the step of a difference
constexpr int kDomainTries = 60;  // halvings of the first step that leave the domain
constexpr double kFirstStep = 0.5;

// tr AB of symmetric matrices.
double trace_product(const MatrixView& A, const MatrixView& B) { return A.cwiseProduct(B).sum(); }

// tr WCYC of symmetric matrices.
double trace_of_four(const MatrixView& W, const MatrixView& C, const MatrixView& Y) {
  return (W * C).cwiseProduct(C * Y).sum();
}

// Extrapolates T(h) = T + c h^2 + ... from values at h, h/2, h/4, ... (Neville), and keeps the entry
// of the table that moves least from its neighbours: shorter steps lose digits, longer ones are not
// asymptotic yet.
double extrapolated(const std::array<double, kHalvings>& values) {
  std::array<double, kHalvings> row = values;
  double best = values[0];
  double change = std::numeric_limits<double>::infinity();
  for (int i = 1; i < kHalvings; ++i) {
    double before = row[0];
    row[0] = values[i];
    double factor = 4;
    for (int j = 1; j <= i; ++j) {
      const double next = row[j - 1] + (row[j - 1] - before) / (factor - 1);
      const double moved = std::max(std::abs(next - row[j - 1]), std::abs(next - before));
      if (moved < change) change = moved, best = next;
      before = row[j];
      row[j] = next;
      factor *= 4;
    }
  }
  return best;
}

// Along one unit direction: the first derivatives of tr WC and tr YC, and the second one of tr WC.
struct Slopes {
  double w = 0, y = 0, second_w = 0;
};

struct Differences {
  const CovarianceAt& cov;
  const Vector a;
  const MatrixView& W;
  const MatrixView& Y;
  const Matrix here;  // covariance at a

  [[nodiscard]] Slopes along(const Vector& e, double h) const {
    std::array<double, kHalvings> w{}, y{}, second{};
    for (int i = 0; i < kHalvings; ++i, h /= 2) {
      const Matrix up = cov(a + h * e), down = cov(a - h * e);
      w[i] = trace_product(W, up - down) / (2 * h);
      y[i] = trace_product(Y, up - down) / (2 * h);
      second[i] = trace_product(W, (up - here) + (down - here)) / (h * h);
    }
    return {extrapolated(w), extrapolated(y), extrapolated(second)};
  }

  // A step outside the domain of Lambda is halved.
  [[nodiscard]] Slopes inside(const Vector& e, double h) const {
    for (int tries = 0; tries < kDomainTries; ++tries, h /= 2) {
      try {
        return along(e, h);
      } catch (const DomainError&) {
        continue;
      }
    }
    return along(e, h);
  }
};

}  // namespace

HigherCumulants& HigherCumulants::operator+=(const HigherCumulants& other) {
  third_w += other.third_w;
  third_y += other.third_y;
  fourth += other.fourth;
  return *this;
}

HigherCumulants no_higher_cumulants(Index d) { return {Vector::Zero(d), Vector::Zero(d), 0}; }

double fourth_moment(const HigherCumulants& cumulants, const MatrixView& C, const VectorView& shift,
                     const MatrixView& W, const MatrixView& Y) {
  const Vector Ws = W * shift, Ys = Y * shift;
  const double w = shift.dot(Ws), y = shift.dot(Ys);
  const double trWC = trace_product(W, C), trYC = trace_product(Y, C);
  return cumulants.fourth + trWC * trYC + 2 * trace_of_four(W, C, Y) +
         2 * cumulants.third_w.dot(Ys) + 2 * cumulants.third_y.dot(Ws) + y * trWC + w * trYC +
         4 * Ws.dot(C * Ys) + w * y;
}

HigherCumulants discrete_cumulants(const MatrixView& deviations, const VectorView& r,
                                   const MatrixView& W, const MatrixView& Y) {
  const Vector w = (deviations * W).cwiseProduct(deviations).rowwise().sum();
  const Vector y = (deviations * Y).cwiseProduct(deviations).rowwise().sum();
  const Vector rw = r.cwiseProduct(w), ry = r.cwiseProduct(y);
  const Matrix C = deviations.transpose() * r.asDiagonal() * deviations;
  return {deviations.transpose() * rw, deviations.transpose() * ry,
          rw.dot(y) - rw.sum() * ry.sum() - 2 * trace_of_four(W, C, Y)};
}

HigherCumulants differenced_cumulants(const CovarianceAt& cov, const VectorView& a,
                                      const MatrixView& W, const MatrixView& Y) {
  const Index d = a.size();
  HigherCumulants out = no_higher_cumulants(d);
  const Differences differences{.cov = cov, .a = a, .W = W, .Y = Y, .here = cov(a)};
  const double largest =
      std::max(max_eigenvalue(differences.here), max_eigenvalue(cov(Vector::Zero(d))));
  if (!(largest > 0)) return out;
  const double h = kFirstStep / std::sqrt(largest);
  const Eigensystem axes = eigensystem(Y);
  for (Index i = 0; i < d; ++i) {
    const Vector e = axes.vectors.col(i);
    const Slopes slopes = differences.inside(e, h);
    out.third_w += slopes.w * e;
    out.third_y += slopes.y * e;
    out.fourth += axes.values(i) * slopes.second_w;
  }
  return out;
}

}  // namespace esscher
