#include "esscher/concentration/tilted_moments.h"

#include <cmath>
#include <limits>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/concentration/queries.h"
#include "esscher/concentration/regime.h"
#include "esscher/measure/gaussian_view.h"

namespace esscher {
namespace {

constexpr Index kTokens = 512;  // per query, where moments of the tokens are sampled
constexpr std::uint64_t kTokenStream = 7;

// Polynomials in s and t with coefficients of any type, [rows][cols].
template <class T>
using Series = std::vector<std::vector<T>>;

template <class T>
Series<T> zero_series(Index rows, Index cols, const T& zero) {
  return Series<T>(static_cast<std::size_t>(rows),
                   std::vector<T>(static_cast<std::size_t>(cols), zero));
}

// (s P + t Q) X for coefficients X of any shape.
template <class T>
Series<T> times(const Matrix& P, const Matrix& Q, const Series<T>& X, const T& zero) {
  Series<T> out = zero_series(static_cast<Index>(X.size()), static_cast<Index>(X[0].size()), zero);
  for (std::size_t i = 0; i < X.size(); ++i) {
    for (std::size_t j = 0; j < X[0].size(); ++j) {
      if (i > 0) out[i][j] += P * X[i - 1][j];
      if (j > 0) out[i][j] += Q * X[i][j - 1];
    }
  }
  return out;
}

// The series of e^K with K(0,0) = 0: i M_ij = sum i' K_i'j' M_{i-i',j-j'}, and by j where i = 0.
Matrix exponential(const Matrix& K) {
  Matrix M = Matrix::Zero(K.rows(), K.cols());
  M(0, 0) = 1;
  for (Index i = 0; i < K.rows(); ++i) {
    for (Index j = 0; j < K.cols(); ++j) {
      if (i + j == 0) continue;
      double sum = 0;
      for (Index k = 0; k <= i; ++k) {
        for (Index l = 0; l <= j; ++l) {
          sum += static_cast<double>(i > 0 ? k : l) * K(k, l) * M(i - k, j - l);
        }
      }
      M(i, j) = sum / static_cast<double>(i > 0 ? i : j);
    }
  }
  return M;
}

// Every second entry in both directions: powers 0, 4 and 8 of norms from those of their squares.
Matrix even_entries(const Matrix& M) {
  Matrix out(3, 3);
  for (Index i = 0; i < 3; ++i) {
    for (Index j = 0; j < 3; ++j) out(i, j) = M(2 * i, 2 * j);
  }
  return out;
}

// Gaussian tokens and queries: (x, z) with x = m + GUz + noise of covariance G.
TiltedMoments closed_moments(const GaussianLaw& mu, const GaussianLaw& nu, const Attention& T) {
  const Index d = mu.mean.size();
  const Matrix map = mu.cov * T.U(), cross = map * nu.cov;
  Vector mean(2 * d);
  mean << mu.mean + map * nu.mean, nu.mean;
  Matrix S(2 * d, 2 * d);
  S.topLeftCorner(d, d) = mu.cov + cross * map.transpose();
  S.topRightCorner(d, d) = cross;
  S.bottomLeftCorner(d, d) = cross.transpose();
  S.bottomRightCorner(d, d) = nu.cov;
  Matrix A = Matrix::Zero(2 * d, 2 * d), B = A;
  A.topLeftCorner(d, d).setIdentity();
  B.bottomRightCorner(d, d).setIdentity();
  const Matrix V = T.V(), image = V * map;
  const Index dv = V.rows();
  const Matrix I = Matrix::Identity(dv, dv);
  return {.value = even_entries(form_moments(mean, S, A, B, 5, 5)),
          .std_error = Matrix::Zero(3, 3),
          .output4 =
              form_moments(V * mean.head(d), image * nu.cov * image.transpose(), I, I, 3, 1)(2, 0),
          .how = "exact"};
}

// E |x|^p at one query for p = 0, 4, 8, and the standard errors.
struct AtQuery {
  Vector value = Vector::Ones(3), error = Vector::Zero(3);
};

AtQuery gaussian_at(const GaussianLaw& mu, const Vector& a) {
  const Matrix I = Matrix::Identity(a.size(), a.size());
  const Matrix M = form_moments(mu.mean + mu.cov * a, mu.cov, I, I, 5, 1);
  return {.value = Vector{{1, M(2, 0), M(4, 0)}}};
}

// A ratio of weighted sums; its error by linearisation.
AtQuery sampled_at(const Matrix& tokens, const Vector& a) {
  const Vector s = tokens * a;
  Vector w = (s.array() - s.maxCoeff()).exp();
  w /= w.sum();
  const Eigen::ArrayXd r4 = tokens.rowwise().squaredNorm().array().square();
  AtQuery out;
  for (Index p = 1; p < 3; ++p) {
    const Eigen::ArrayXd power = p == 1 ? r4 : r4.square();
    out.value(p) = (w.array() * power).sum();
    out.error(p) = (w.array() * (power - out.value(p))).matrix().norm();
  }
  return out;
}

// Mean and standard error of values [n] that are drawn, or given with their own errors [n].
struct Average {
  double value = 0, std_error = 0;
};
Average average(const Vector& values, const Vector& errors, bool drawn) {
  const auto n = static_cast<double>(values.size());
  const double mean = values.mean();
  if (!drawn) return {mean, errors.norm() / n};
  const double spread = (values.array() - mean).matrix().squaredNorm() / std::max(1.0, n - 1);
  return {mean, std::sqrt(spread / n)};
}

TiltedMoments infinite_moments(const std::string& why) {
  const double inf = std::numeric_limits<double>::infinity();
  return {.value = Matrix::Constant(3, 3, inf),
          .std_error = Matrix::Zero(3, 3),
          .output4 = inf,
          .finite = false,
          .how = why};
}

TiltedMoments moments_at_queries(const Problem& problem, const Matrix& z, std::uint64_t seed) {
  const auto mu = gaussian_law(problem.mu);
  const bool drawn = problem.nu.has_value();
  const Index n = z.rows();
  Matrix value(n, 9), error(n, 9);
  Vector output4(n);
  for (Index i = 0; i < n; ++i) {
    const Vector q = z.row(i).transpose(), a = problem.attention.tilt(q);
    try {
      output4(i) = std::pow(problem.attention(problem.mu, q).squaredNorm(), 2);
    } catch (const DomainError&) {
      return infinite_moments("T[mu] does not exist at some queries");
    }
    // Fresh tokens for each query, so that the spread over queries counts them too.
    const Stream tokens = Stream(seed).split(kTokenStream).split(static_cast<std::uint64_t>(i));
    const AtQuery x =
        mu ? gaussian_at(*mu, a) : sampled_at(problem.mu.sample(tokens, kTokens).tokens(), a);
    const double r4 = std::pow(q.squaredNorm(), 2);
    const Vector powers{{1, r4, r4 * r4}};
    for (Index p = 0; p < 3; ++p) {
      value.row(i).segment(3 * p, 3) = x.value(p) * powers.transpose();
      error.row(i).segment(3 * p, 3) = x.error(p) * powers.transpose();
    }
  }
  TiltedMoments out{.value = Matrix(3, 3), .std_error = Matrix(3, 3)};
  for (Index k = 0; k < 9; ++k) {
    const Average mean = average(value.col(k), error.col(k), drawn);
    out.value(k / 3, k % 3) = mean.value;
    out.std_error(k / 3, k % 3) = mean.std_error;
  }
  const Average mean = average(output4, Vector::Zero(n), drawn);
  out.output4 = mean.value;
  out.output4_error = mean.std_error;
  out.how = !drawn && mu ? "exact at the given queries"
                         : "estimated from " + std::to_string(n) + " queries";
  return out;
}

}  // namespace

Matrix form_moments(const VectorView& mean, const MatrixView& S, const MatrixView& A,
                    const MatrixView& B, Index rows, Index cols) {
  const Index n = mean.size();
  const Matrix zero = Matrix::Zero(n, n), AS = 2 * A * S, BS = 2 * B * S;
  const Vector none = Vector::Zero(n);
  Matrix K = Matrix::Zero(rows, cols);
  Series<Matrix> power = zero_series(rows, cols, zero);  // (2 N S)^k
  power[0][0] = Matrix::Identity(n, n);
  Series<Vector> shift = zero_series(rows, cols, none);  // N (2 S N)^{k-1} mean
  shift[0][0] = mean;
  shift = times<Vector>(A, B, shift, none);
  for (Index k = 1; k <= rows + cols - 2; ++k) {
    power = times<Matrix>(AS, BS, power, zero);
    if (k > 1) shift = times<Vector>(AS, BS, shift, none);
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < cols; ++j) {
        const auto r = static_cast<std::size_t>(i), c = static_cast<std::size_t>(j);
        K(i, j) += power[r][c].trace() / (2 * static_cast<double>(k)) + mean.dot(shift[r][c]);
      }
    }
  }
  Matrix M = exponential(K);
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < cols; ++j) {
      M(i, j) *= std::tgamma(static_cast<double>(i) + 1) * std::tgamma(static_cast<double>(j) + 1);
    }
  }
  return M;
}

TiltedMoments tilted_moments(const Problem& problem, Index queries, std::uint64_t seed) {
  if (!problem.nu) return moments_at_queries(problem, problem.points, seed);
  if (query_average(problem).outside) {
    return infinite_moments("Lambda(Uz) is infinite at some queries of their law");
  }
  const auto mu = gaussian_law(problem.mu), nu = gaussian_law(*problem.nu);
  if (mu && nu) return closed_moments(*mu, *nu, problem.attention);
  const Matrix z = problem.nu->sample(Stream(seed).split(8), queries).tokens();
  return moments_at_queries(problem, z, seed);
}

}  // namespace esscher
