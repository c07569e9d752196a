#include "esscher/prompt/exact_mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/prompt/token_moments.h"

namespace esscher {

namespace {

constexpr double kReach = 8.8;
constexpr double kMaxLogY = 7;  // e^-y = 0 beyond

// Moments of one component at y = e^{u + mu + tau g}, x = g - tau.
struct Moments {
  double psi = 0;  // E[1 - e^-y]
  double G1 = 0;   // E[y e^-y]
  double D1 = 0;   // E[y (1 - e^-y)], so that G1 = E[y] - D1
  double G2 = 0, G2x = 0, G2xx = 0;
};

// One component, read through a matrix W (V, or the identity for grad_V).
struct Component {
  double weight, mu, tau;
  Vector Wc;  // W (m_k + tau_k b_k - m_a): displacement of its tilted mean
  Vector Wb;  // W b_k
  double trWRW;

  [[nodiscard]] Moments at(double u) const {
    const double step = std::min(0.6, TokenMoments::kStep / std::max(tau, 1e-300));
    const long last = static_cast<long>(std::ceil((kReach + 2 * tau) / step));
    Moments out;
    for (long i = -static_cast<long>(std::ceil(kReach / step)); i <= last; ++i) {
      const double g = static_cast<double>(i) * step, log_y = u + mu + tau * g;
      const double density = step * std::exp(-0.5 * g * g) / std::sqrt(2 * std::numbers::pi);
      // Gaussian times y in one exponential: y alone may overflow.
      const double density_y =
          step * std::exp(log_y - 0.5 * g * g) / std::sqrt(2 * std::numbers::pi);
      if (log_y > kMaxLogY) {
        out.psi += density;
        out.D1 += density_y;
        continue;
      }
      const double y = std::exp(log_y), survive = std::exp(-y), hit = -std::expm1(-y);
      out.psi += density * hit;
      out.D1 += density_y * hit;
      out.G1 += density_y * survive;
      const double second = density_y * y * survive, x = g - tau;
      out.G2 += second;
      out.G2x += second * x;
      out.G2xx += second * x * x;
    }
    return out;
  }
};

struct ScoreMixture {
  std::vector<Component> parts;
  double log_mgf;  // Lambda(a)
  Vector limit;    // W m_a
};

ScoreMixture prepare(const GaussianMixtureLaw& law, const Attention& attention, const VectorView& z,
                     const Matrix& W) {
  const Index d = attention.dim();
  check_dimension("exact", "z", z.size(), d);
  check_dimension("exact", "law.weights", law.weights.size(),
                  static_cast<long>(law.components.size()));
  const Vector a = attention.tilt(z);
  ScoreMixture out;
  std::vector<Vector> tilted;
  Vector exponent(law.weights.size());
  for (std::size_t k = 0; k < law.components.size(); ++k) {
    const GaussianLaw& part = law.components[k];
    check_dimension("exact", "component mean", part.mean.size(), d);
    const Vector Ga = part.cov * a;
    const double tau = std::sqrt(std::max(0.0, a.dot(Ga)));
    if (!(tau <= kMaxMixtureTau)) {
      throw CapabilityError("exact: scores of component " + std::to_string(k) +
                            " have standard deviation tau = " + to_text(tau) +
                            ", the exact engine reaches tau = " + to_text(kMaxMixtureTau) +
                            "; the sampled engine can serve it");
    }
    const Vector b = tau > 0 ? Vector(Ga / tau) : Vector::Zero(d);
    const double mu = a.dot(part.mean), weight = law.weights[static_cast<Index>(k)];
    const Vector Wb = W * b;
    const double trWGW = (W * part.cov).cwiseProduct(W).sum();
    tilted.emplace_back(W * (part.mean + Ga));
    exponent[static_cast<Index>(k)] = std::log(weight) + mu + 0.5 * tau * tau;
    out.parts.push_back({weight, mu, tau, {}, Wb, std::max(0.0, trWGW - Wb.squaredNorm())});
  }
  const double top = exponent.maxCoeff();
  out.log_mgf = top + std::log((exponent.array() - top).exp().sum());
  out.limit = Vector::Zero(W.rows());
  for (std::size_t k = 0; k < tilted.size(); ++k) {
    out.limit += std::exp(exponent[static_cast<Index>(k)] - out.log_mgf) * tilted[k];
  }
  for (std::size_t k = 0; k < tilted.size(); ++k) out.parts[k].Wc = tilted[k] - out.limit;
  return out;
}

// Sums over components at one u.
struct Node {
  double psi = 0;
  double weight2 = 0;  // F_2[1]
  double F2 = 0;       // F_2[|W zeta|^2]
  Vector F1;           // F_1[W zeta]
};

// sum_k p_k E[y] Wc_k = 0, so G_1 may be read as -D_1 there: the smaller of the two loses nothing.
Node node(const ScoreMixture& mixture, double u) {
  Node out;
  const Index rows = mixture.limit.size();
  out.F1 = Vector::Zero(rows);
  Vector by_G1 = Vector::Zero(rows), by_D1 = Vector::Zero(rows);
  double G1 = 0, D1 = 0;
  for (const Component& part : mixture.parts) {
    const Moments m = part.at(u);
    const double p = part.weight;
    out.psi += p * m.psi;
    G1 += p * m.G1;
    D1 += p * m.D1;
    out.weight2 += p * m.G2;
    by_G1 += p * m.G1 * part.Wc;
    by_D1 -= p * m.D1 * part.Wc;
    out.F1 -= p * part.tau * m.G2 * part.Wb;
    out.F2 += p * (part.Wc.squaredNorm() * m.G2 + 2 * part.Wc.dot(part.Wb) * m.G2x +
                   part.Wb.squaredNorm() * m.G2xx + part.trWRW * m.G2);
  }
  out.F1 += D1 < G1 ? by_D1 : by_G1;
  return out;
}

// u with L psi(u) = 1 (about 1/2 at L = 1), by bisection: psi grows from 0 to 1.
double middle(const ScoreMixture& mixture, double L) {
  const double target = 0.6 / L;
  double lo = -mixture.log_mgf - std::log(L) - 2, hi = 0;
  for (const Component& part : mixture.parts) hi = std::max(hi, kReach * part.tau - part.mu + 5);
  hi = std::max(hi, lo + 1);
  while (hi - lo > 0.5) {
    const double u = 0.5 * (lo + hi);
    (node(mixture, u).psi < target ? lo : hi) = u;
  }
  return 0.5 * (lo + hi);
}

struct Result {
  Vector bias;          // W E[sum omega zeta]
  double square = 0;    // E|W sum omega zeta|^2
  double weights2 = 0;  // E[sum omega^2]
};

// The integrands need not have one peak, so the ends are where a monotone bound is negligible:
// on the left they are below L psi, on the right below (1 - psi)^{L-2}, and 0 once every y is
// large.
Result integrate(const ScoreMixture& mixture, std::int64_t L) {
  const double Ld = static_cast<double>(L), start = middle(mixture, Ld);
  double right = start, narrowest = kMaxMixtureTau;
  for (const Component& part : mixture.parts) {
    right = std::max(right, kReach * part.tau - part.mu + 5);
    narrowest = std::min(narrowest, part.tau);
  }
  const double du =
      TokenMoments::kStep * std::max(1.0, std::floor(narrowest / std::sqrt(2 * std::log(Ld) + 4)));
  Result out{Vector::Zero(mixture.limit.size())};
  const auto add = [&](double u) {
    const Node n = node(mixture, u);
    const Survival survival(L, n.psi);
    out.bias += du * survival.power[1] * n.F1;
    out.weights2 += du * survival.power[1] * n.weight2;
    out.square += du * (survival.power[1] * n.F2 + survival.power[2] * n.F1.squaredNorm());
    return n.psi;
  };
  for (int i = 0; start + i * du < right; ++i) {
    if ((Ld - 2) * std::log1p(-std::min(add(start + i * du), 1.0)) < -90) break;
  }
  for (int i = -1; Ld * add(start + i * du) > 1e-36; --i) {
  }
  return out;
}

const Matrix& reader(Metric metric, const Attention& attention, const Matrix& identity) {
  switch (metric) {
    case Metric::output: return attention.V();
    case Metric::grad_v: return identity;
    default:
      throw CapabilityError("exact: " + std::string(name(metric)) +
                            " of a Gaussian mixture needs fourth moments across components; the "
                            "sampled and direct engines can serve it");
  }
}

}  // namespace

Vector expected_output(const GaussianMixtureLaw& law, const Attention& attention,
                       const VectorView& z, Length L) {
  const ScoreMixture mixture = prepare(law, attention, z, attention.V());
  if (L.is_infinite()) return mixture.limit;
  return mixture.limit + integrate(mixture, L.count()).bias;
}

double effective_sample_size(const GaussianMixtureLaw& law, const Attention& attention,
                             const VectorView& z, Length L) {
  if (law.components.size() == 1) {
    return effective_sample_size(law.components[0], attention, z, L);
  }
  const ScoreMixture mixture = prepare(law, attention, z, attention.V());
  if (L.is_infinite()) return std::numeric_limits<double>::infinity();
  return 1 / integrate(mixture, L.count()).weights2;
}

ErrorParts error_parts(Metric metric, const GaussianMixtureLaw& law, const Attention& attention,
                       const VectorView& z, Length L) {
  if (law.components.size() == 1) return error_parts(metric, law.components[0], attention, z, L);
  const Matrix identity = Matrix::Identity(attention.dim(), attention.dim());
  const ScoreMixture mixture = prepare(law, attention, z, reader(metric, attention, identity));
  if (L.is_infinite()) return {};
  const Result result = integrate(mixture, L.count());
  const double factor =
      metric == Metric::grad_v ? static_cast<double>(attention.output_dim()) : 1.0;
  const double bias2 = result.bias.squaredNorm();
  return {factor * bias2, factor * std::max(0.0, result.square - bias2)};
}

double mean_square_error(Metric metric, const GaussianMixtureLaw& law, const Attention& attention,
                         const VectorView& z, Length L) {
  return error_parts(metric, law, attention, z, L).total();
}

}  // namespace esscher
