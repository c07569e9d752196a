#include "esscher/prompt/exact_mixture_nodes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace esscher {

namespace {

constexpr double kStep = TokenMoments::kStep;
constexpr double kReach = 8.8;

// L excess <= L e^{u + log_mgf} is negligible against H >= 1/L before u falls below this, for every
// 64-bit L.
double lowest_u(double log_mgf) { return -log_mgf - 145; }

}  // namespace

MixtureNodes::MixtureNodes(std::vector<ScorePart> parts, double log_mgf)
    : parts_(std::move(parts)),
      log_mgf_(log_mgf),
      narrowest_(std::numeric_limits<double>::infinity()) {
  double right = 0;
  for (const ScorePart& part : parts_) {
    tokens_.emplace_back(part.tau, part.tau, 4, lowest_u(log_mgf), part.mu);
    narrowest_ = std::min(narrowest_, part.tau);
    right = std::max(right, kReach * part.tau - part.mu + 5);
  }
  right_ = static_cast<long>(std::ceil(right / kStep));
}

bool MixtureNodes::finished(std::int64_t L, double psi) {
  return static_cast<double>(L - 2) * std::log1p(-std::min(psi, 1.0)) < -60;
}

long MixtureNodes::stride_for(std::int64_t L) const {
  const double width = narrowest_ / std::sqrt(2 * std::log(static_cast<double>(L)) + 4);
  return std::max(1L, std::lround(std::floor(width)));
}

long MixtureNodes::middle(std::int64_t L) {
  const double Ld = static_cast<double>(L);
  long lo = static_cast<long>(std::floor((-log_mgf_ - std::log(Ld) - 2) / kStep));
  long hi = std::max(right_, lo + 6);
  while (hi - lo > 3) {
    const long mid = lo + (hi - lo) / 2;
    (at(mid).psi < 0.6 / Ld ? lo : hi) = mid;
  }
  return lo + (hi - lo) / 2;
}

const MixtureNodes::Node& MixtureNodes::at(long i) {
  const auto [place, fresh] = nodes_.try_emplace(i);
  Node& node = place->second;
  if (!fresh) return node;
  double G1 = 0;
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    const Moments& m = node.moments.emplace_back(Moments{tokens_[k].all(i), tokens_[k].excess(i)});
    node.psi += parts_[k].weight * m.G(0, 0);
    G1 += parts_[k].weight * m.G(1, 0);
    node.G2 += parts_[k].weight * m.G(2, 0);
    node.excess += parts_[k].weight * m.excess;
  }
  node.small = node.excess < G1;
  return node;
}

}  // namespace esscher
