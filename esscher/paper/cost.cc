#include "esscher/paper/cost.h"

namespace esscher::paper {
namespace {

constexpr Cost kCosts[] = {
#include "esscher/paper/costs.inc"
};

}  // namespace

std::optional<Cost> cost_of(std::string_view id, Size size) {
  for (const Cost& cost : kCosts) {
    if (cost.id == id && cost.size == size) return cost;
  }
  return std::nullopt;
}

}  // namespace esscher::paper
