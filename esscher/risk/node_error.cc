#include "esscher/risk/node_error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "esscher/base/error.h"

namespace esscher {
namespace {

// Below this tau^2 the quotient (m - H)/tau^2 loses digits, and the slope of m - H at 0 replaces
// it. The derivative of the quotient in tau^2 is multiplied by g^2 <= q tau^2 and is negligible
// there.
constexpr double kSmallTau2 = 3e-6;

constexpr double kRange = 8;  // tables end at multiples of it
constexpr auto kRanges = static_cast<std::size_t>(kMaxTableTau / kRange);

}  // namespace

NodeError node_error(const UniversalTable& table, double rest, double g, double tau2, double q,
                     double y) {
  const UniversalTable::Point u = table.at_tau2(tau2);
  const double m_slope = u.dM2c_ratio - u.dH;
  double k = m_slope, dk = 0;
  if (tau2 > kSmallTau2) {
    k = (u.M2c_ratio - u.H) / tau2;
    dk = (m_slope - k) / tau2;
  }
  const double miss = g - y;
  return {rest * miss * miss + (q - 2 * g * miss) * u.H + g * g * k,
          2 * rest * miss + 2 * g * k - 2 * (g + miss) * u.H,
          (q - 2 * g * miss) * u.dH + g * g * dk, u.H};
}

struct NodeTables::Kept {
  std::int64_t L;
  std::mutex lock;
  std::array<std::shared_ptr<const UniversalTable>, kRanges> tables;
};

NodeTables::NodeTables(std::int64_t L) : kept_(std::make_shared<Kept>()) { kept_->L = L; }

std::int64_t NodeTables::length() const { return kept_->L; }

const UniversalTable& NodeTables::up_to(double tau) const {
  if (!(tau <= kMaxTableTau)) {
    throw DomainError("softmax_risk: tau = " + to_text(tau) + " at some draw, expected at most " +
                      to_text(kMaxTableTau) +
                      "; beyond it softmax is frozen on one token, simulate it");
  }
  const double ranges = std::max(1.0, std::ceil(tau / kRange));
  auto& slot = kept_->tables[static_cast<std::size_t>(ranges) - 1];
  {
    const std::scoped_lock hold(kept_->lock);
    if (slot) return *slot;
  }
  // Outside the lock, because making a table runs a parallel loop: two threads may make the same
  // one, which costs time and nothing else. The first to be stored stays.
  auto table = std::make_shared<const UniversalTable>(kept_->L, kRange * ranges);
  const std::scoped_lock hold(kept_->lock);
  if (!slot) slot = std::move(table);
  return *slot;
}

}  // namespace esscher
