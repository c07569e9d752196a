// The geometric grid of lengths, once for TOML, the command line and the paper.
#pragma once

#include <cstdint>
#include <vector>

namespace esscher {

// from, .., to with about per_decade lengths per factor of ten, evenly spaced in log L and rounded
// to integers. Both ends are included and no length appears twice. Throws ArgumentError unless
// 1 <= from <= to and per_decade > 0.
std::vector<std::int64_t> length_grid(std::int64_t from, std::int64_t to, double per_decade);

}  // namespace esscher
