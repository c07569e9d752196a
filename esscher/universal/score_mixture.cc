#include "esscher/universal/score_mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "esscher/simd/gemm.h"
#include "esscher/universal/score_lattice.h"
#include "esscher/universal/token_moments.h"

namespace esscher {
namespace {

// The range of u ends where L psi < kLeft or phi^{L-2} < e^kRight.
constexpr double kLeft = 1e-8;
constexpr double kRight = -30;

double log_or_minus_infinity(double x) {
  return x > 0 ? std::log(x) : -std::numeric_limits<double>::infinity();
}

// log E[e^s] and the tilted weights p_k E_k[e^s] / E[e^s].
struct Tilt {
  double log_mgf;
  Vector weights;

  explicit Tilt(const ScoreMixture& mixture) : weights(mixture.weights.size()) {
    for (Index k = 0; k < weights.size(); ++k) {
      weights[k] =
          log_or_minus_infinity(mixture.weights[k]) + mixture.mu[k] + 0.5 * mixture.tau2[k];
    }
    const double top = weights.maxCoeff();
    log_mgf = top + std::log((weights.array() - top).exp().sum());
    weights = (weights.array() - log_mgf).exp();
  }
};

// The components of positive weight, and for each the rows m_k + c_k - m and c_k of `basis`
// [2K,dv].
std::vector<ScoreComponent> components(const ScoreMixture& mixture, const Tilt& tilt,
                                       Matrix& basis) {
  std::vector<Index> used;
  for (Index k = 0; k < mixture.weights.size(); ++k) {
    if (mixture.weights[k] > 0) used.push_back(k);
  }
  const auto K = static_cast<Index>(used.size());
  const Vector m = (mixture.mean + mixture.cross).transpose() * tilt.weights;
  basis.resize(2 * K, mixture.mean.cols());
  std::vector<ScoreComponent> out;
  for (Index at = 0; at < K; ++at) {
    const Index k = used[at];
    const double tau = std::sqrt(std::max(0.0, mixture.tau2[k]));
    basis.row(at) = mixture.mean.row(k) + mixture.cross.row(k) - m.transpose();
    basis.row(K + at) = mixture.cross.row(k);
    const double along = tau > 0 ? basis.row(K + at).squaredNorm() / (tau * tau) : 0;
    const double turn = tau > 0 ? 2 * basis.row(at).dot(basis.row(K + at)) / tau : 0;
    const double rest = std::max(0.0, mixture.variance[k] - along);
    out.push_back({.weight = mixture.weights[k],
                   .tilted = tilt.weights[k],
                   .mu = mixture.mu[k] - tilt.log_mgf,
                   .tau = tau,
                   .square = {basis.row(at).squaredNorm() + rest, turn, along}});
  }
  return out;
}

// The i with L psi(i kScoreStep) about 1 (about 1/2 at L = 1), by bisection, since psi grows from 0
// to 1.
long middle(const ScoreLattice& lattice, double L, long end) {
  long lo = static_cast<long>(std::floor((-std::log(L) - 2) / kScoreStep));
  long hi = std::max(end, lo + 1);
  while (hi - lo > 1) {
    const long i = lo + (hi - lo) / 2;
    (lattice.psi(i) < 0.6 / L ? lo : hi) = i;
  }
  return lo;
}

}  // namespace

Vector limit(const ScoreMixture& mixture) {
  return (mixture.mean + mixture.cross).transpose() * Tilt(mixture).weights;
}

// The integrands may have several peaks, so the ends are chosen where a monotone bound is
// negligible. On the left the integrands are below L psi <= L e^u, on the right below
// (1 - psi)^{L-2}, and they are 0 once every y is large.
double mean_square_error(const ScoreMixture& mixture, std::int64_t L) {
  const Tilt tilt(mixture);
  const double Ld = static_cast<double>(L);
  Matrix basis(0, mixture.mean.cols());  // rows m_k + c_k - m, then c_k
  const std::vector<ScoreComponent> parts = components(mixture, tilt, basis);
  double narrowest = parts.front().tau, right = 0;
  for (const ScoreComponent& part : parts) {
    right = std::max(right, kScoreReach * part.tau - part.mu + 5);
    narrowest = std::min(narrowest, part.tau);
  }
  const long stride =
      std::max(1L, static_cast<long>(std::floor(narrowest / std::sqrt(2 * std::log(Ld) + 4))));
  const long end = static_cast<long>(std::ceil(right / kScoreStep));
  const long i_min = static_cast<long>(std::floor(std::log(kLeft / Ld) / kScoreStep)) - stride - 1;
  const ScoreLattice lattice(parts, i_min);

  std::vector<ScoreLattice::Node> nodes;
  std::vector<double> coefficients;
  const Index K2 = basis.rows();
  const auto add = [&](long i) {
    coefficients.resize(coefficients.size() + static_cast<std::size_t>(K2));
    nodes.push_back(lattice.node(i, coefficients.data() + coefficients.size() - K2));
    return nodes.back().psi;
  };
  const long start = middle(lattice, Ld, end);
  for (long i = start; i <= std::max(start, end); i += stride) {
    if ((Ld - 2) * std::log1p(-std::min(add(i), 1.0)) < kRight) break;
  }
  for (long i = start - stride; i >= i_min && Ld * add(i) > kLeft; i -= stride) {
  }

  const auto count = static_cast<Index>(nodes.size());
  Matrix F1 = Matrix::Zero(count, basis.cols());  // F_1[zeta] at each u
  add_product(Eigen::Map<const Matrix>(coefficients.data(), count, K2), basis, F1);
  double total = 0;
  for (Index i = 0; i < count; ++i) {
    const Survival survival(L, nodes[i].psi);
    total += survival.power[1] * nodes[i].square + survival.power[2] * F1.row(i).squaredNorm();
  }
  return kScoreStep * static_cast<double>(stride) * total;
}

}  // namespace esscher
