#include "esscher/risk/node_error.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include "esscher/base/error.h"

namespace esscher {
namespace {

// Below this tau^2 the quotient (m - H)/tau^2 loses digits and its derivative in tau^2, which is
// multiplied by g^2 <= q tau^2, is negligible: there the quotient is the slope of m - H at 0.
constexpr double kSmallTau2 = 3e-6;

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

// A table takes longer to make than a risk to evaluate, and scramblings, flows and twins ask for
// the same ones, so the process keeps them. Ranges are multiples of 8: the pieces of a table, hence
// the bits of a result, depend on the tau at hand only, never on what was asked before.
std::shared_ptr<const UniversalTable> table_for(std::int64_t L, double tau) {
  constexpr std::size_t kMaxTables = 256;
  static std::mutex lock;
  static std::map<std::pair<std::int64_t, double>, std::shared_ptr<const UniversalTable>> tables;
  if (!(tau <= kMaxTableTau)) {
    throw DomainError("softmax_risk: tau = " + to_text(tau) + " at some draw, expected at most " +
                      to_text(kMaxTableTau) +
                      "; beyond it softmax is frozen on one token, simulate it");
  }
  const double range = std::min(kMaxTableTau, 8 * std::max(1.0, std::ceil(tau / 8)));
  const std::pair key{L, range};
  {
    const std::scoped_lock hold(lock);
    const auto found = tables.find(key);
    if (found != tables.end()) return found->second;
  }
  // Outside the lock: two threads may make the same table, which costs time and nothing else.
  auto table = std::make_shared<const UniversalTable>(L, range);
  const std::scoped_lock hold(lock);
  if (tables.size() >= kMaxTables) tables.clear();
  return tables.emplace(key, std::move(table)).first->second;
}

}  // namespace esscher
