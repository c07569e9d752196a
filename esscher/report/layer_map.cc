#include "esscher/report/detail/layer_map.h"

#include <cctype>
#include <map>
#include <set>

namespace esscher {
namespace {

// The number that follows `letter` at `at`, which moves behind it; -1 if there is none.
int number_after(const std::string& text, char letter, std::size_t& at) {
  if (at >= text.size() || text[at] != letter) return -1;
  const std::size_t first = ++at;
  int value = 0;
  while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0) {
    value = 10 * value + (text[at++] - '0');
    if (at - first > 6) return -1;
  }
  return at > first ? value : -1;
}

}  // namespace

std::optional<std::pair<int, int>> place_of(const std::string& name) {
  std::size_t at = name.rfind(".L");
  at = at == std::string::npos ? 0 : at + 1;
  const int layer = number_after(name, 'L', at);
  if (layer < 0 || at >= name.size() || name[at] != '.') return std::nullopt;
  const int head = number_after(name, 'H', ++at);
  if (head < 0 || at != name.size()) return std::nullopt;
  return std::pair(layer, head);
}

std::optional<Figure> layer_map(Page& page, const std::string& id,
                                const std::vector<LayerCell>& cells, const std::string& title,
                                const std::string& caption) {
  std::map<std::pair<int, int>, const LayerCell*> places;
  std::set<int> layers, heads;
  std::set<std::string> models;  // what stands before the place
  for (const LayerCell& cell : cells) {
    const auto place = place_of(cell.name);
    if (!place || !places.emplace(*place, &cell).second) return std::nullopt;
    layers.insert(place->first);
    heads.insert(place->second);
    const std::size_t cut = cell.name.rfind(".L");
    models.insert(cut == std::string::npos ? "" : cell.name.substr(0, cut));
  }
  if (places.size() < 2 || models.size() > 1 || places.size() != layers.size() * heads.size()) {
    return std::nullopt;
  }
  Sheet sheet{.columns = {"name", "layer", "head", "value", "verdict"}, .rows = {}};
  for (const auto& [place, cell] : places) {
    sheet.add(cell->name, std::to_string(place.first), std::to_string(place.second), cell->value,
              cell->text);
  }
  page.datasets[id] = std::move(sheet);
  return Figure{.id = id,
                .chart = HeatmapChart{.data = id,
                                      .x = "head",
                                      .x_title = "head",
                                      .y = "layer",
                                      .y_title = "layer",
                                      .value = {.column = "value", .title = title},
                                      .tooltip = {"name", "value", "verdict"}},
                .caption = caption};
}

}  // namespace esscher
