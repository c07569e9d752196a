#include "esscher/report/vega_lite.h"

#include <utility>

#include "esscher/base/error.h"
#include "esscher/report/chart_json.h"

namespace esscher {
namespace {

constexpr const char* kSchemaUrl = "https://vega.github.io/schema/vega-lite/v5.json";

constexpr int kHeight = 340;

Json base(const std::string& data, const Json& description) {
  return {{"$schema", kSchemaUrl},
          {"data", {{"name", data}}},
          {"width", "container"},
          {"height", kHeight},
          {"autosize", {{"type", "fit"}, {"contains", "padding"}}},
          {"usermeta", {{"esscher", description}}}};
}

// datum['column'] in a Vega expression; also for names with dots or quotes.
std::string datum(const std::string& column) { return "datum[" + dump(Json(column)) + "]"; }

// Dots and brackets are paths in a Vega-Lite field name.
std::string field(const std::string& column) {
  std::string out;
  for (const char c : column) {
    if (c == '.' || c == '[' || c == ']' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string title_or(const std::string& title, const std::string& column) {
  return title.empty() ? column : title;
}

Json scale_of(const Axis& axis) {
  Json scale = axis.log ? Json{{"type", "log"}} : Json{{"zero", false}};
  if (axis.log) scale["nice"] = false;  // a whole empty decade is no help
  if (axis.min) scale["domainMin"] = *axis.min;
  if (axis.max) scale["domainMax"] = *axis.max;
  if (axis.min || axis.max) scale["clamp"] = true;
  return scale;
}

Json axis_of(const Axis& axis) {
  // Powers of ten only: a label at every 2 and 5 is noise on a paper-like figure.
  if (!axis.log) return {{"format", "~g"}};
  // Six digits: powers of ten from 1e+6 on are written as such and leave room for each other.
  return {{"format", ".6~g"}, {"tickCount", 8}, {"labelOverlap", "greedy"}};
}

Json quantity(const Axis& axis) {
  return {{"field", field(axis.column)},
          {"type", "quantitative"},
          {"title", title_or(axis.title, axis.column)},
          {"scale", scale_of(axis)},
          {"axis", axis_of(axis)}};
}

Json positive(const Axis& axis) { return {{"filter", datum(axis.column) + " > 0"}}; }

Json log_filters(const Axis& x, const Axis& y) {
  Json transform = Json::array();
  if (x.log) transform.push_back(positive(x));
  if (y.log) transform.push_back(positive(y));
  return transform;
}

Json tooltip_of(const std::vector<std::string>& columns) {
  Json tooltip = Json::array();
  for (const auto& column : columns) {
    if (!column.empty()) tooltip.push_back({{"field", field(column)}, {"title", column}});
  }
  return tooltip;
}

std::vector<std::string> columns_or(const std::vector<std::string>& given,
                                    const std::vector<std::string>& otherwise) {
  return given.empty() ? otherwise : given;
}

// The legend as a switch. A selection must live in one layer only.
Json legend_switch(const std::string& series) {
  return Json::array(
      {{{"name", "shown"},
        {"select", {{"type", "point"}, {"fields", {field(series)}}, {"toggle", "true"}}},
        {"bind", "legend"}}});
}

Json opacity(double shown) {
  return {{"condition", {{"param", "shown"}, {"value", shown}}}, {"value", 0}};
}

Json colour(const std::string& series, const std::string& title,
            const std::vector<std::string>& order = {}) {
  Json out{{"field", field(series)}, {"type", "nominal"}, {"title", title_or(title, series)}};
  if (!order.empty()) out["sort"] = order;
  return out;
}

void add_references(Json& layers, const std::vector<ReferenceLine>& references, const Axis& x,
                    const Axis& y) {
  for (const auto& line : references) {
    const bool vertical = line.axis == 'x';
    if (!vertical && line.axis != 'y') {
      throw_argument("ReferenceLine", "axis", std::string(1, line.axis), "'x' or 'y'");
    }
    const std::string channel(1, line.axis);
    const Axis& axis = vertical ? x : y;
    Json position{{"datum", line.value},
                  {"type", "quantitative"},
                  {"title", title_or(axis.title, axis.column)}};
    // A linear scale is left to the other layers: bars start at zero, curves do not.
    if (axis.log) position["scale"] = scale_of(axis);
    const Json one_row{{"values", Json::array({Json::object()})}};
    layers.push_back({{"data", one_row},
                      {"mark", {{"type", "rule"}, {"style", "reference"}}},
                      {"encoding", {{channel, position}}}});
    if (line.label.empty()) continue;
    Json mark{{"type", "text"}, {"style", "reference-label"}, {"text", line.label}};
    Json encoding{{channel, position}};
    if (vertical) {
      mark.update({{"align", "left"}, {"dx", 5}, {"baseline", "top"}, {"y", 4}});
    } else {
      mark.update(
          {{"align", "right"}, {"baseline", "bottom"}, {"dy", -3}, {"x", "width"}, {"dx", -4}});
    }
    layers.push_back({{"data", one_row}, {"mark", mark}, {"encoding", encoding}});
  }
}

Json line_encoding(const CurveChart& chart) {
  Json encoding{{"x", quantity(chart.x)}, {"y", quantity(chart.y)}};
  if (!chart.series.empty()) {
    encoding["color"] = colour(chart.series, chart.series_title, chart.series_order);
    encoding["opacity"] = opacity(1);
  }
  if (!chart.dash.empty()) {
    encoding["strokeDash"] = {{"field", field(chart.dash)}, {"type", "nominal"}};
  }
  return encoding;
}

Json band_layer(const CurveChart& chart) {
  Json transform = log_filters(chart.x, chart.y);
  transform.push_back({{"filter", "isValid(" + datum(chart.high) + ")"}});  // some series have none
  std::string low = datum(chart.low);
  // A band that reaches zero has no lower end on a log axis; it is drawn one decade deep.
  if (chart.y.log) low += " > 0 ? " + low + " : " + datum(chart.y.column) + " / 10";
  transform.push_back({{"calculate", low}, {"as", "band_low"}});
  Json encoding = line_encoding(chart);
  encoding["y"]["field"] = "band_low";
  encoding["y2"] = {{"field", field(chart.high)}};
  if (!chart.series.empty()) {
    encoding["opacity"] = opacity(0.18);
  }
  return {{"transform", transform},
          {"mark", {{"type", "area"}, {"style", "band"}, {"line", false}, {"clip", true}}},
          {"encoding", encoding}};
}

Json curve_layers(const CurveChart& chart) {
  Json line{{"transform", log_filters(chart.x, chart.y)},
            {"mark", {{"type", "line"}, {"style", "curve"}, {"clip", true}}},
            {"encoding", line_encoding(chart)}};
  if (!chart.series.empty()) line["params"] = legend_switch(chart.series);
  // The line comes first: layers share a legend, which reacts to clicks only if its switch is in
  // the first of them.
  Json layers = Json::array({line});
  if (!chart.low.empty()) layers.push_back(band_layer(chart));
  if (!chart.reference_data.empty()) {
    Json theory{{"data", {{"name", chart.reference_data}}},
                {"transform", log_filters(chart.x, chart.y)},
                {"mark", {{"type", "line"}, {"style", "theory"}, {"clip", true}}},
                {"encoding", line_encoding(chart)}};
    if (!chart.series.empty()) theory["encoding"]["opacity"] = opacity(0.9);
    layers.push_back(theory);
  }
  Json point = line;
  point.erase("params");
  // Without drawn points the hidden ones still carry the tooltips.
  point["mark"] = {{"type", "point"}, {"style", chart.points ? "dot" : "hover"}, {"clip", true}};
  if (!chart.points) point["encoding"]["opacity"] = {{"value", 0}};
  point["encoding"]["tooltip"] = tooltip_of(columns_or(
      chart.tooltip, {chart.series, chart.x.column, chart.y.column, chart.low, chart.high}));
  layers.push_back(point);
  add_references(layers, chart.references, chart.x, chart.y);
  return layers;
}

}  // namespace

Json curve_chart(const CurveChart& chart) {
  if (chart.low.empty() != chart.high.empty()) {
    throw_argument("curve_chart", "low, high", "only one of them", "both columns or none");
  }
  Json spec = base(chart.data, chart_json(chart));
  if (chart.facet.empty()) {
    spec["layer"] = curve_layers(chart);
    return spec;
  }
  // A facet of Vega-Lite has one dataset, so panels lack the reference, and it cannot follow the
  // container; two columns of this width fit a page.
  spec.erase("width");
  spec.erase("height");
  spec.erase("autosize");
  spec["columns"] = 2;
  spec["facet"] = {{"field", field(chart.facet)}, {"type", "nominal"}, {"title", chart.facet}};
  CurveChart panel = chart;
  panel.reference_data.clear();
  spec["spec"] = {{"width", 300}, {"height", 2 * kHeight / 3}, {"layer", curve_layers(panel)}};
  return spec;
}

Json scatter_chart(const ScatterChart& chart) {
  Json spec = base(chart.data, chart_json(chart));
  Json encoding{{"x", quantity(chart.x)}, {"y", quantity(chart.y)}};
  Json points{{"transform", log_filters(chart.x, chart.y)},
              {"mark", {{"type", "point"}, {"style", "scatter"}, {"clip", true}}}};
  encoding["tooltip"] =
      tooltip_of(columns_or(chart.tooltip, {chart.series, chart.x.column, chart.y.column}));
  if (!chart.series.empty()) {
    encoding["color"] = colour(chart.series, chart.series_title);
    encoding["opacity"] = opacity(0.75);
    points["params"] = legend_switch(chart.series);
  }
  points["encoding"] = encoding;
  Json layers = Json::array({points});
  if (chart.diagonal) {
    Axis same = chart.x;
    same.title = title_or(chart.y.title, chart.y.column);
    same.log = chart.y.log;
    layers.push_back({{"transform", log_filters(chart.x, chart.x)},
                      {"mark", {{"type", "line"}, {"style", "reference"}, {"clip", true}}},
                      {"encoding", {{"x", quantity(chart.x)}, {"y", quantity(same)}}}});
  }
  add_references(layers, chart.references, chart.x, chart.y);
  spec["layer"] = layers;
  return spec;
}

Json bar_chart(const BarChart& chart) {
  if (chart.low.empty() != chart.high.empty()) {
    throw_argument("bar_chart", "low, high", "only one of them", "both columns or none");
  }
  Json spec = base(chart.data, chart_json(chart));
  Json x{{"field", field(chart.category)},
         {"type", "nominal"},
         {"title", title_or(chart.category_title, chart.category)},
         {"sort", chart.sorted ? Json("-y") : Json(nullptr)},
         {"axis", {{"labelAngle", 0}, {"labelOverlap", true}}}};
  Json y = quantity(chart.y);
  if (!chart.y.log) y["scale"]["zero"] = true;
  Json bars{{"mark", {{"type", "bar"}, {"style", "column"}}}, {"encoding", {{"x", x}, {"y", y}}}};
  bars["encoding"]["tooltip"] = tooltip_of(columns_or(
      chart.tooltip, {chart.category, chart.series, chart.y.column, chart.low, chart.high}));
  Json errors{{"mark", {{"type", "rule"}, {"style", "error-bar"}}},
              {"encoding", {{"x", x}, {"y", y}}}};
  if (!chart.series.empty()) {
    const Json offset{{"field", field(chart.series)}, {"type", "nominal"}};
    bars["encoding"]["xOffset"] = offset;
    bars["encoding"]["color"] = colour(chart.series, chart.series_title);
    bars["encoding"]["opacity"] = opacity(1);
    bars["params"] = legend_switch(chart.series);
    errors["encoding"]["xOffset"] = offset;
    errors["encoding"]["opacity"] = opacity(1);
  }
  if (chart.y.log) bars["transform"] = Json::array({positive(chart.y)});
  Json layers = Json::array({bars});
  if (!chart.low.empty()) {
    errors["encoding"]["y"]["field"] = field(chart.low);
    errors["encoding"]["y2"] = {{"field", field(chart.high)}};
    if (chart.y.log) errors["transform"] = Json::array({{{"filter", datum(chart.low) + " > 0"}}});
    layers.push_back(errors);
  }
  add_references(layers, chart.references, {}, chart.y);
  spec["layer"] = layers;
  return spec;
}

Json histogram_chart(const HistogramChart& chart) {
  Json spec = base(chart.data, chart_json(chart));
  Json x = quantity(chart.x);
  x["bin"] = {{"maxbins", chart.bins}};
  x.erase("scale");
  Json bars{{"mark", {{"type", "bar"}, {"style", "column"}, {"binSpacing", 1}}},
            {"encoding",
             {{"x", x},
              {"y",
               {{"aggregate", "count"},
                {"type", "quantitative"},
                {"title", chart.count_title},
                {"stack", nullptr}}},
              {"tooltip", Json::array({x, {{"aggregate", "count"}, {"title", "count"}}})}}}};
  bars["encoding"]["tooltip"][0].erase("axis");
  Json layers = Json::array({bars});
  Axis linear = chart.x;
  linear.log = false;
  add_references(layers, chart.references, linear, {});
  spec["layer"] = layers;
  return spec;
}

Json heatmap_chart(const HeatmapChart& chart) {
  Json spec = base(chart.data, chart_json(chart));
  const auto band = [](const std::string& column, const std::string& title) {
    return Json{{"field", field(column)},
                {"type", "ordinal"},
                {"title", title_or(title, column)},
                {"axis", {{"labelAngle", 0}, {"labelOverlap", true}, {"grid", false}}}};
  };
  Json scale = chart.value.log ? Json{{"type", "log"}} : Json::object();
  if (chart.diverging)
    scale.update({{"scheme", "blueorange"}, {"domainMid", 0}});
  else
    scale["scheme"] = "viridis";
  if (chart.value.min) scale["domainMin"] = *chart.value.min;
  if (chart.value.max) scale["domainMax"] = *chart.value.max;
  spec["mark"] = {{"type", "rect"}, {"style", "tile"}};
  spec["encoding"] = {
      {"x", band(chart.x, chart.x_title)},
      {"y", band(chart.y, chart.y_title)},
      {"color",
       {{"field", field(chart.value.column)},
        {"type", "quantitative"},
        {"title", title_or(chart.value.title, chart.value.column)},
        {"legend", {{"format", "~g"}}},
        {"scale", scale}}},
      {"tooltip", tooltip_of(columns_or(chart.tooltip, {chart.x, chart.y, chart.value.column}))}};
  if (!chart.panel.empty()) {
    spec["encoding"]["column"] = {{"field", field(chart.panel)}, {"type", "nominal"}};
    spec["width"] = spec["height"] = kHeight / 2;
    spec.erase("autosize");
  }
  if (chart.slider.empty()) return spec;
  if (chart.slider_values.empty()) {
    throw_argument("heatmap_chart", "slider_values", "empty", "the distinct values of the slider");
  }
  // The slider runs over positions, so that values need not be evenly spaced.
  const auto last = chart.slider_values.size() - 1;
  spec["params"] = Json::array({{{"name", "at"},
                                 {"value", last},
                                 {"bind",
                                  {{"input", "range"},
                                   {"min", 0},
                                   {"max", last},
                                   {"step", 1},
                                   {"name", title_or(chart.slider_title, chart.slider) + " "}}}},
                                {{"name", "values"}, {"value", chart.slider_values}}});
  // The title names the value, because a position means nothing to a reader.
  spec["title"] = {{"text",
                    {{"expr", dump(Json(title_or(chart.slider_title, chart.slider) + " = ")) +
                                  " + values[at]"}}}};
  spec["transform"] = Json::array({{{"filter", datum(chart.slider) + " == values[at]"}}});
  return spec;
}

namespace {

struct ToSpec {
  Json operator()(const CurveChart& chart) const { return curve_chart(chart); }
  Json operator()(const ScatterChart& chart) const { return scatter_chart(chart); }
  Json operator()(const BarChart& chart) const { return bar_chart(chart); }
  Json operator()(const HistogramChart& chart) const { return histogram_chart(chart); }
  Json operator()(const HeatmapChart& chart) const { return heatmap_chart(chart); }
  Json operator()(const VegaLiteChart& chart) const { return parse_json("chart", chart.spec); }
};

}  // namespace

Json vega_lite(const Chart& chart) { return std::visit(ToSpec{}, chart); }

}  // namespace esscher
