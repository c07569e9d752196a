#include "esscher/universal/universal.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "esscher/base/error.h"
#include "esscher/universal/token_moments.h"

namespace esscher {

namespace {

void check(std::int64_t L, double tau) {
  if (L < 1) throw_argument("universal", "L", std::to_string(L), "an integer >= 1");
  if (!(tau >= 0 && tau <= kMaxTau)) {
    throw_argument("universal", "tau", to_text(tau), "a number in [0, " + to_text(kMaxTau) + "]");
  }
}

// The u = log t where t sum e^s is of order 1. It is -log L - tau^2/2 in the bulk, and minus the
// typical largest score when one token carries the sum.
double typical_u(double L, double tau) {
  const double frozen = std::sqrt(2 * std::log(L));
  return tau < frozen ? -std::log(L) - 0.5 * tau * tau : -tau * frozen;
}

// Nodes of the trapezoidal rule in u. The integrand varies on the scale 1 in the bulk, and on the
// scale of the largest score, tau / sqrt(2 log L), where that is wider.
class Nodes {
 public:
  Nodes(double L, double tau)
      : stride_(std::max(1L, std::lround(std::floor(tau / std::sqrt(2 * std::log(L) + 4))))),
        start_(std::lround(typical_u(L, tau) / step())),
        limit_(static_cast<long>((20 * tau + 150) / step())) {}

  [[nodiscard]] double step() const { return static_cast<double>(stride_) * TokenMoments::kStep; }
  [[nodiscard]] double u_min() const { return static_cast<double>(start_ - limit_) * step(); }

  // Calls add(i) at u = i * kStep from the middle outwards, on each side until add returns false.
  template <class Add>
  void sweep(Add add) const {
    for (long n = 0; n <= limit_ && add((start_ + n) * stride_); ++n) {
    }
    for (long n = 1; n <= limit_ && add((start_ - n) * stride_); ++n) {
    }
  }

 private:
  long stride_, start_, limit_;
};

// The sum of a positive log-concave integrand. done() is true once the last term is negligible.
class Sum {
 public:
  void add(double value) {
    total_ += value;
    last_ = value;
  }
  [[nodiscard]] bool done(double tolerance) const { return last_ < tolerance * total_; }
  [[nodiscard]] double total() const { return total_; }

 private:
  double total_ = 0, last_ = 0;
};

Universal finish(double tau, double H, double pairs, double M2c_ratio) {
  const double tau2 = tau * tau;
  return {tau2 * pairs, tau2 * M2c_ratio, H, pairs, M2c_ratio, std::abs(H + pairs - 1)};
}

// With phi = 1 - psi and x = (s - tau^2)/tau, for which partial integration gives G_1[x] = -tau
// G_2,
//
//   H         = L int G_2 phi^{L-1}
//   1 - H     = L(L-1) int G_1^2 phi^{L-2}
//   M2c/tau^2 = L int G_2[x^2] phi^{L-1} + L(L-1) tau^2 int G_2^2 phi^{L-2}
//
// All terms are positive. also(token, i, survival, du) is called at every node.
template <class Also>
Universal sweep_universal(std::int64_t L, double tau, Also also) {
  const Nodes nodes(static_cast<double>(L), tau);
  const TokenMoments token(tau, tau, 2, nodes.u_min());
  const double du = nodes.step();
  Sum H, pairs, M2c;
  nodes.sweep([&](long i) {
    const auto G = token.basic(i);
    const Survival survival(L, G.psi);
    H.add(survival.power[1] * G.G2);
    pairs.add(survival.power[2] * G.G1 * G.G1);
    M2c.add(survival.power[1] * G.G2xx + survival.power[2] * tau * tau * G.G2 * G.G2);
    also(token, i, survival, du);
    return !(H.done(3e-17) && M2c.done(3e-17) && pairs.done(3e-17));
  });
  return finish(tau, H.total() * du, pairs.total() * du, M2c.total() * du);
}

// Below this tau, moments come from partial integration. Above it, far in the frozen regime, that
// would be a difference of terms of order tau^2.
constexpr double kFarFrozen = 40;
double v1_ratio(double tau, const Universal& u, double p3) {
  return tau * tau * (2 * p3 - u.H) - u.M2c_ratio;
}

}  // namespace

Universal universal(std::int64_t L, double tau) {
  check(L, tau);
  if (L == 1) return {0, tau * tau * (1 + tau * tau), 1, 0, 1 + tau * tau, 0};
  return sweep_universal(L, tau, [](const TokenMoments&, long, const Survival&, double) {});
}

Universal3 universal3(std::int64_t L, double tau) {
  check(L, tau);
  if (tau > kFarFrozen) return universal4(L, tau);
  double p3 = 0;
  const auto add_third = [&](const TokenMoments& token, long i, const Survival& survival,
                             double du) { p3 += 0.5 * du * survival.power[1] * token.third(i); };
  Universal3 out(L == 1 ? universal(L, tau) : sweep_universal(L, tau, add_third));
  out.p3 = L == 1 ? 1 : p3;
  out.v1_ratio = L == 1 ? -1 : v1_ratio(tau, out, p3);
  return out;
}

// With x = (s - c)/tau, A = sum omega (x^2 - 1) and B = sum omega x, v/tau^2 - 1 = A - B^2 for any
// c. In the bulk c = tau^2 makes A and B small, because tilted scores are N(tau^2, tau^2). Once one
// token carries the weight, S is near its mean M1, and c = M1 keeps A and B of order 1. q does not
// depend on c either, so x is centred anew at every u, where its integrand is a sum of squares.
Universal4 universal4(std::int64_t L, double tau) {
  Universal4 result(universal(L, tau));
  const double Ld = static_cast<double>(L);
  const bool frozen = tau * tau > 2 * std::log(Ld);
  const double c = frozen ? result.M1 / tau : tau;
  const Nodes nodes(Ld, tau);
  const TokenMoments token(tau, c, 4, nodes.u_min());
  Sum h, pairs;
  double v1 = 0, vv = 0, q = 0, vh = 0, h2 = 0, p3 = 0, n2 = 0;
  nodes.sweep([&](long i) {
    const TokenMoments::Table G = token.all(i);
    const Survival survival(L, G(0, 0));
    const double* w = survival.power;
    double B1 = G(1, 1), A1 = G(1, 2) - G(1, 0);
    if (!frozen) {  // the same by partial integration, without a difference of large terms
      B1 = -tau * G(2, 0);
      A1 = tau * tau * (G(3, 0) - G(2, 0));
    }
    const double G1 = G(1, 0), G2 = G(2, 0), BB = G(2, 2);
    const double AA = G(2, 4) - 2 * G(2, 2) + G(2, 0), AB = G(2, 3) - G(2, 1);
    const double ABB = G(3, 4) - G(3, 2);

    const double A_A = w[1] * AA + w[2] * A1 * A1;
    const double A_B_B = w[1] * ABB + w[2] * (2 * AB * B1 + A1 * BB) + w[3] * A1 * B1 * B1;
    const double B_B_B_B = w[1] * G(4, 4) + w[2] * (4 * G(3, 3) * B1 + 3 * BB * BB) +
                           w[3] * 6 * BB * B1 * B1 + w[4] * B1 * B1 * B1 * B1;
    v1 += w[1] * (A1 - BB) - w[2] * B1 * B1;
    vv += A_A - 2 * A_B_B / 2 + B_B_B_B / 6;

    const double A_h = w[1] * (G(3, 2) - G(3, 0)) + w[2] * A1 * G2;
    const double B_B_h = w[1] * G(4, 2) + w[2] * (BB * G2 + 2 * G(3, 1) * B1) + w[3] * B1 * B1 * G2;
    vh += A_h / 2 - B_B_h / 6;

    // With m = G_2[x]/G_2, pairs of tokens give 2 G_2 G_2[(x-m)^2], and triples give
    // G_2[(x-m)^2] G_1^2 + G_2 G_1[x-m]^2.
    const double m = G2 > 0 ? G(2, 1) / G2 : 0.0;
    const double spread = BB - m * G(2, 1);
    const double offset = B1 - m * G1;
    q += (w[2] * 2 * G2 * spread + w[3] * (spread * G1 * G1 + G2 * offset * offset)) / 6;

    h2 += (w[1] * G(4, 0) + w[2] * G2 * G2) / 6;
    p3 += w[1] * G(3, 0) / 2;
    n2 += (w[2] * 2 * G2 * G2 + w[3] * G2 * G1 * G1) / 6;
    h.add(w[1] * G2);
    pairs.add(w[2] * G1 * G1 + w[4] * G1 * G1 * G1 * G1);
    return !(h.done(1e-22) && (L == 1 || pairs.done(1e-22)));
  });
  const double du = nodes.step();
  result.v2_ratio = vv * du;
  result.q_ratio = q * du;
  result.vh_ratio = vh * du;
  result.h2 = h2 * du;
  result.p3 = p3 * du;
  result.n2 = n2 * du;
  result.v1_ratio = tau > kFarFrozen ? v1 * du : v1_ratio(tau, result, result.p3);
  return result;
}

Universal4 universal_up_to(bool order4, std::int64_t L, double tau) {
  return order4 ? universal4(L, tau) : Universal4(universal(L, tau));
}

}  // namespace esscher
