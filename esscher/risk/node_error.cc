#include "esscher/risk/node_error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <vector>

#include "esscher/base/error.h"

namespace esscher {
namespace {

// Below this tau^2 the quotient (m - H)/tau^2 loses digits, and the slope of m - H at 0 replaces
// it. The derivative of the quotient in tau^2 is multiplied by g^2 <= q tau^2 and is negligible
// there.
constexpr double kSmallTau2 = 3e-6;

// Where tables end. Flows and trained heads rarely leave the first ones.
constexpr std::array<double, 9> kRanges = {8, 16, 24, 32, 40, 80, 160, 320, kMaxTableTau};

NodeFunctions functions(double tau2, double H, double dH, double m, double dm) {
  const double slope = dm - dH;
  if (tau2 <= kSmallTau2) return {H, slope, dH, 0};
  const double k = (m - H) / tau2;
  return {H, k, dH, (slope - k) / tau2};
}

}  // namespace

NodeFunctionTable::NodeFunctionTable(std::shared_ptr<const UniversalTable> table)
    : table_(std::move(table)), tau2_limit_(table_->tau_max() * table_->tau_max()) {}

NodeFunctions NodeFunctionTable::at_tau2(double tau2) const {
  if (tau2 > tau2_limit_) return frozen(tau2);
  const UniversalTable::Point u = table_->at_tau2(tau2);
  return functions(tau2, u.H, u.dH, u.M2c_ratio, u.dM2c_ratio);
}

// E S = mean tau and E S^2 = square tau^2, so that 1 - H = E S/tau^2 and
// m = E (S - tau^2)^2/tau^2 = square - 2 mean tau + tau^2.
NodeFunctions NodeFunctionTable::frozen(double tau2) const {
  const UniversalTable::Point u = table_->at_tau2(tau2_limit_);
  const double tau = std::sqrt(tau2), end = table_->tau_max();
  const double mean = end * u.M1_ratio;
  const double square = u.M2c_ratio + 2 * mean * end - tau2_limit_;
  return functions(tau2, 1 - mean / tau, mean / (2 * tau2 * tau), square - 2 * mean * tau + tau2,
                   1 - mean / tau);
}

NodeError node_error(const NodeFunctions& u, double rest, double g, double q, double y) {
  const double miss = g - y;
  return {rest * miss * miss + (q - 2 * g * miss) * u.H + g * g * u.k,
          2 * rest * miss + 2 * g * u.k - 2 * (g + miss) * u.H,
          (q - 2 * g * miss) * u.dH + g * g * u.dk, u.H};
}

struct NodeTables::Kept {
  std::int64_t L;
  std::mutex lock;
  std::array<std::shared_ptr<const UniversalTable>, kRanges.size()> tables;
};

// The last lengths that were asked for, the newest first, keep their tables: a study of one length
// makes many risks of it, and the slider of the explorer has 58 lengths.
NodeTables::NodeTables(std::int64_t L) {
  constexpr std::size_t kLengths = 64;
  static std::mutex lock;
  static auto& recent = *new std::vector<std::shared_ptr<Kept>>;
  const std::scoped_lock hold(lock);
  const auto found =
      std::find_if(recent.begin(), recent.end(), [&](const auto& kept) { return kept->L == L; });
  if (found != recent.end()) {
    kept_ = *found;
    recent.erase(found);
  } else {
    kept_ = std::make_shared<Kept>();
    kept_->L = L;
  }
  recent.insert(recent.begin(), kept_);
  if (recent.size() > kLengths) recent.pop_back();
}

std::int64_t NodeTables::length() const { return kept_->L; }

NodeFunctionTable NodeTables::up_to(double tau) const {
  const auto range = std::ranges::lower_bound(kRanges, std::min(tau, kMaxTableTau));
  auto& slot = kept_->tables[static_cast<std::size_t>(range - kRanges.begin())];
  {
    const std::scoped_lock hold(kept_->lock);
    if (slot) return NodeFunctionTable(slot);
  }
  // Outside the lock, because making a table runs a parallel loop: two threads may make the same
  // one, which costs time and nothing else. The first to be stored stays.
  auto table = std::make_shared<const UniversalTable>(kept_->L, *range);
  const std::scoped_lock hold(kept_->lock);
  if (!slot) slot = std::move(table);
  return NodeFunctionTable(slot);
}

}  // namespace esscher
