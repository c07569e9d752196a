// A map of layers times heads, for heads that are named L0.H0, L0.H1, .. as captures name them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "esscher/report/page.h"

namespace esscher {

// Layer and head of a name that ends in "L<layer>.H<head>"; none otherwise.
std::optional<std::pair<int, int>> place_of(const std::string& name);

struct LayerCell {
  std::string name;
  double value = 0;
  std::string text = {};  // for the tooltip
};

// One cell per head. None unless the names are those of every head of some layers of one model.
std::optional<Figure> layer_map(Page& page, const std::string& id,
                                const std::vector<LayerCell>& cells, const std::string& title,
                                const std::string& caption);

}  // namespace esscher
