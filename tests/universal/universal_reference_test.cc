// Universal functions against 50-digit arithmetic. Independent of the library: raw moments of s
// (nothing centred, nothing integrated by parts), a generic sum over set partitions, other nodes.
#include <array>
#include <boost/math/constants/constants.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <vector>

#include "esscher/universal/universal.h"
#include "tests/testing.h"

namespace esscher {
namespace {

namespace mp = boost::multiprecision;
using Real = mp::number<mp::cpp_bin_float<50>, mp::et_off>;
using testing::close;

constexpr int kPerUnit = 7;  // lattice log y = j / kPerUnit
constexpr int kLowest = -120 * kPerUnit, kHighest = 5 * kPerUnit;

struct Node {
  Real psi;
  Real G[5][5];  // G[k][j] = E[y^k e^-y s^j]
};

struct Factor {
  int k, j;  // sum_l omega_l^k s_l^j
};

class Reference {
 public:
  Reference(std::int64_t L, double tau) : tau_(tau), L_(L) {
    const double frozen = std::sqrt(2 * std::log(static_cast<double>(L)));
    const double u0 =
        tau < frozen ? -std::log(static_cast<double>(L)) - tau * tau / 2 : -tau * frozen;
    stride_ = std::max(1, static_cast<int>(0.7 * tau / std::sqrt(frozen * frozen + 4)));
    const int start = static_cast<int>(std::lround(u0 * kPerUnit / stride_));
    for (int direction : {1, -1}) {
      for (int n = direction > 0 ? 0 : 1;; ++n) {
        nodes_.push_back(node((start + direction * n) * stride_, tau));
        const Node& last = nodes_.back();
        const Real size = survive(last, 1) * (last.G[1][0] + last.G[2][0]);
        if (n > 8 && size < 1e-26) break;
      }
    }
  }

  // E prod_j of the factors.
  [[nodiscard]] Real operator()(const std::vector<Factor>& factors) const {
    int n = 0;
    for (const Factor& f : factors) n += f.k;
    Real total = 0;
    for (const Node& node : nodes_) {
      std::vector<Factor> blocks;
      total += partitions(node, factors, 0, blocks);
    }
    total *= Real(stride_) / kPerUnit;
    for (int i = 2; i < n; ++i) total /= i;
    return total;
  }

 private:
  [[nodiscard]] Real survive(const Node& node, int p) const {
    Real value = 1;
    for (int i = 0; i < p; ++i) value *= Real(L_ - i);
    return L_ <= p ? value : value * exp(Real(L_ - p) * log1p(Real(-node.psi)));
  }

  // Sum over set partitions: factor `next` joins one of the blocks so far or opens a new one.
  Real partitions(const Node& node, const std::vector<Factor>& factors, std::size_t next,
                  std::vector<Factor>& blocks) const {
    if (next == factors.size()) {
      Real product = survive(node, static_cast<int>(blocks.size()));
      for (const Factor& b : blocks) product *= node.G[b.k][b.j];
      return product;
    }
    Real total = 0;
    const Factor f = factors[next];
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      blocks[b] = {blocks[b].k + f.k, blocks[b].j + f.j};
      total += partitions(node, factors, next + 1, blocks);
      blocks[b] = {blocks[b].k - f.k, blocks[b].j - f.j};
    }
    blocks.push_back(f);
    total += partitions(node, factors, next + 1, blocks);
    blocks.pop_back();
    return total;
  }

  // e^-y, 1 - e^-y and y on the lattice, once for all cases.
  static const std::vector<std::array<Real, 3>>& lattice() {
    static const auto table = [] {
      std::vector<std::array<Real, 3>> rows;
      for (int j = kLowest; j <= kHighest; ++j) {
        const Real y = exp(Real(j) / kPerUnit);
        rows.push_back({exp(Real(-y)), -expm1(Real(-y)), y});
      }
      return rows;
    }();
    return table;
  }

  // Density of s at (j - i) / kPerUnit times the step.
  [[nodiscard]] const Real& weight(int offset) {
    const auto index = static_cast<std::size_t>(std::abs(offset));
    while (weights_.size() <= index) {
      const Real s = Real(static_cast<int>(weights_.size())) / kPerUnit;
      weights_.push_back(exp(Real(-s * s / (2 * tau_ * tau_))) /
                         (kPerUnit * tau_ * sqrt(boost::math::constants::two_pi<Real>())));
    }
    return weights_[index];
  }

  Node node(int i, double tau) {
    Node out{};
    // y^4 tilts s by 4 tau^2; psi is as small as its weight far to the right, so that counts too.
    const int reach = static_cast<int>(11 * tau * kPerUnit);
    const int last = i + reach + static_cast<int>(std::min(4 * tau * tau, 200.0) * kPerUnit);
    for (int j = std::max(kLowest, i - reach); j <= last; ++j) {
      const Real s = Real(j - i) / kPerUnit;
      Real value = weight(j - i);
      if (j > kHighest) {
        out.psi += value;
        continue;
      }
      const auto& [survival, hit, y] = lattice()[static_cast<std::size_t>(j - kLowest)];
      out.psi += value * hit;
      value *= survival;
      for (int k = 1; k <= 4; ++k) {
        value *= y;
        Real term = value;
        for (int power = 0; power <= 4; ++power) {
          out.G[k][power] += term;
          term *= s;
        }
      }
    }
    return out;
  }

  Real tau_;
  std::vector<Real> weights_;
  std::int64_t L_;
  int stride_;
  std::vector<Node> nodes_;
};

struct Case {
  double L, tau, tolerance;
};

class UniversalReference : public ::testing::TestWithParam<Case> {};

TEST_P(UniversalReference, AgreesIn50Digits) {
  const auto L = static_cast<std::int64_t>(GetParam().L);
  const double tau = GetParam().tau;
  const double relative = GetParam().tolerance;
  const Reference E(L, tau);
  const Real t2 = Real(tau) * Real(tau);
  EXPECT_LT(abs(Real(E({{1, 0}, {1, 0}}) - 1)), 1e-17);
  const Real S = E({{1, 1}}), SS = E({{1, 1}, {1, 1}}), H = E({{2, 0}});
  const Real v = E({{1, 2}}) - SS;
  const Real v2 =
      E({{1, 2}, {1, 2}}) - 2 * E({{1, 2}, {1, 1}, {1, 1}}) + E({{1, 1}, {1, 1}, {1, 1}, {1, 1}});
  const Real q = E({{2, 2}}) - 2 * E({{2, 1}, {1, 1}}) + E({{2, 0}, {1, 1}, {1, 1}});
  const Real vh = E({{1, 2}, {2, 0}}) - E({{1, 1}, {1, 1}, {2, 0}});
  const Real h2 = E({{2, 0}, {2, 0}}), p3 = E({{3, 0}});

  const Universal4 u = universal4(L, tau);
  const auto check = [&](const char* name, double got, const Real& want, double floor = 0) {
    EXPECT_TRUE(close(got, want.convert_to<double>(), relative, floor)) << name;
  };
  check("M1", u.M1, S);
  check("M2c", u.M2c, SS - 2 * t2 * S + t2 * t2);
  check("H", u.H, H);
  check("v1", u.v1_ratio, v / t2 - 1);
  check("v2", u.v2_ratio, (v2 - 2 * t2 * v + t2 * t2) / (t2 * t2));
  check("q", u.q_ratio, q / t2);
  check("vh", u.vh_ratio, vh / t2 - H, std::sqrt(u.h2 * u.v2_ratio));  // either sign
  check("h2", u.h2, h2);
  check("p3", u.p3, p3);
  check("n2", u.n2, H - 2 * p3 + h2);
}

// From the frozen regime through the transition to the bulk.
INSTANTIATE_TEST_SUITE_P(Cases, UniversalReference,
                         ::testing::Values(Case{2, 40, 1e-11}, Case{1e3, 3, 1e-11},
                                           Case{1e12, 2, 1e-11}, Case{1e15, 6, 1e-11},
                                           Case{1e15, 9, 1e-11}, Case{1e12, 100, 1e-10},
                                           Case{1e5, 600, 1e-10}));

}  // namespace
}  // namespace esscher
