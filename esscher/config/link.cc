#include "esscher/config/link.h"

#include <vector>

namespace esscher {

Link read_link(const Table& table) {
  const auto name = table.enumerator_or("link", LinkName::tanh);
  if (name != LinkName::polynomial) return Link(name);
  const std::vector<double> c = table.numbers("coefficients");
  if (c.empty() || c.size() > 3) table.fail("coefficients", "1 to 3 numbers: c0, c1, c2");
  return Link::polynomial(c[0], c.size() > 1 ? c[1] : 0, c.size() > 2 ? c[2] : 0);
}

}  // namespace esscher
