#include "esscher/report/chart_json.h"

namespace esscher {
namespace {

Json axis_json(const Axis& axis) {
  Json out{{"column", axis.column}, {"log", axis.log}};
  if (!axis.title.empty()) out["title"] = axis.title;
  if (axis.min) out["min"] = *axis.min;
  if (axis.max) out["max"] = *axis.max;
  return out;
}

Json lines_json(const std::vector<ReferenceLine>& lines) {
  Json out = Json::array();
  for (const ReferenceLine& line : lines) {
    out.push_back(
        {{"axis", std::string(1, line.axis)}, {"value", line.value}, {"label", line.label}});
  }
  return out;
}

// Drops texts and lists that are empty.
Json filled(Json object) {
  for (auto it = object.begin(); it != object.end();) {
    const bool empty = it->is_null() || (it->is_string() && it->get<std::string>().empty()) ||
                       (it->is_array() && it->empty());
    it = empty ? object.erase(it) : std::next(it);
  }
  return object;
}

}  // namespace

Json chart_json(const CurveChart& c) {
  return filled({{"kind", "curve"},
                 {"data", c.data},
                 {"x", axis_json(c.x)},
                 {"y", axis_json(c.y)},
                 {"series", c.series},
                 {"series_title", c.series_title},
                 {"series_order", c.series_order},
                 {"dash", c.dash},
                 {"quiet", c.quiet},
                 {"low", c.low},
                 {"high", c.high},
                 {"reference_data", c.reference_data},
                 {"reference_title", c.reference_title},
                 {"references", lines_json(c.references)},
                 {"tooltip", c.tooltip},
                 {"facet", c.facet},
                 {"points", c.points}});
}

Json chart_json(const ScatterChart& c) {
  return filled({{"kind", "scatter"},
                 {"data", c.data},
                 {"x", axis_json(c.x)},
                 {"y", axis_json(c.y)},
                 {"series", c.series},
                 {"series_title", c.series_title},
                 {"label", c.label},
                 {"diagonal", c.diagonal},
                 {"references", lines_json(c.references)},
                 {"tooltip", c.tooltip}});
}

Json chart_json(const BarChart& c) {
  return filled({{"kind", "bar"},
                 {"data", c.data},
                 {"category", c.category},
                 {"category_title", c.category_title},
                 {"y", axis_json(c.y)},
                 {"series", c.series},
                 {"series_title", c.series_title},
                 {"low", c.low},
                 {"high", c.high},
                 {"references", lines_json(c.references)},
                 {"tooltip", c.tooltip},
                 {"sorted", c.sorted}});
}

Json chart_json(const HistogramChart& c) {
  return filled({{"kind", "histogram"},
                 {"data", c.data},
                 {"x", axis_json(c.x)},
                 {"bins", c.bins},
                 {"count_title", c.count_title},
                 {"references", lines_json(c.references)}});
}

Json chart_json(const HeatmapChart& c) {
  return filled({{"kind", "heatmap"},
                 {"data", c.data},
                 {"x", c.x},
                 {"x_title", c.x_title},
                 {"y", c.y},
                 {"y_title", c.y_title},
                 {"value", axis_json(c.value)},
                 {"panel", c.panel},
                 {"part", c.part},
                 {"diverging", c.diverging},
                 {"slider", c.slider},
                 {"slider_title", c.slider_title},
                 {"slider_values", c.slider_values},
                 {"lines_data", c.lines_data},
                 {"line", c.line},
                 {"tooltip", c.tooltip}});
}

}  // namespace esscher
