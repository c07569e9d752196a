#include "esscher/report/reading.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "esscher/base/number_text.h"

namespace esscher {
namespace {

// Columns of a sheet by name; nothing where a sheet has no such column.
class Reader {
 public:
  Reader(const Sheet& sheet, const std::string& column) {
    const auto found = std::find(sheet.columns.begin(), sheet.columns.end(), column);
    if (found != sheet.columns.end()) at_ = static_cast<std::size_t>(found - sheet.columns.begin());
  }

  std::optional<double> number(const Record& row) const {
    if (!at_) return std::nullopt;
    const Value& value = row[*at_];
    if (const auto* x = std::get_if<double>(&value))
      return std::isfinite(*x) ? std::optional(*x) : std::nullopt;
    if (const auto* n = std::get_if<std::int64_t>(&value)) return static_cast<double>(*n);
    if (const auto* L = std::get_if<Length>(&value); L && !L->is_infinite())
      return static_cast<double>(L->count());
    return std::nullopt;
  }

  std::string text(const Record& row) const {
    if (!at_) return "";
    const Value& value = row[*at_];
    if (const auto* words = std::get_if<std::string>(&value)) return *words;
    if (const auto* L = std::get_if<Length>(&value)) return L->text();
    const std::optional<double> x = number(row);
    return x ? brief(*x) : "";
  }

 private:
  std::optional<std::size_t> at_;
};

// The first and the last point of one curve.
struct Ends {
  std::string name;
  double first_x, first_y, last_x, last_y;
};

// Values beyond fixed ends of the axis are said too: the sentence is about the numbers.
bool drawable(const Axis& axis, double value) { return !axis.log || value > 0; }

std::string name_of(std::initializer_list<std::string> parts) {
  std::string out;
  for (const std::string& part : parts) {
    if (!part.empty()) out += (out.empty() ? "" : ", ") + part;
  }
  return out;
}

std::vector<Ends> ends_of(const CurveChart& chart, const Sheet& sheet) {
  const Reader x(sheet, chart.x.column), y(sheet, chart.y.column);
  const Reader facet(sheet, chart.facet), series(sheet, chart.series), dash(sheet, chart.dash);
  std::vector<Ends> curves;
  for (const Record& row : sheet.rows) {
    const std::optional<double> at = x.number(row), value = y.number(row);
    if (!at || !value || !drawable(chart.x, *at) || !drawable(chart.y, *value)) continue;
    // Quiet curves have numbers for names: the column says what is counted.
    const std::string of = (chart.quiet ? chart.series + " " : "") + series.text(row);
    const std::string name = name_of({facet.text(row), of, dash.text(row)});
    auto curve =
        std::find_if(curves.begin(), curves.end(), [&](const Ends& e) { return e.name == name; });
    if (curve == curves.end()) curve = curves.insert(curve, {name, *at, *value, *at, *value});
    if (*at < curve->first_x) curve->first_x = *at, curve->first_y = *value;
    if (*at >= curve->last_x) curve->last_x = *at, curve->last_y = *value;
  }
  return curves;
}

std::string words_of(const Axis& axis) { return axis.title.empty() ? axis.column : axis.title; }

std::string at_end(const Ends& curve) {
  return brief(curve.last_y, 3) + (curve.name.empty() ? "" : " (" + curve.name + ")");
}

std::string curves_reading(const CurveChart& chart, const Sheet& sheet) {
  const std::vector<Ends> curves = ends_of(chart, sheet);
  if (curves.empty()) return "";
  const std::string x = words_of(chart.x);
  if (curves.size() == 1) {
    const Ends& only = curves.front();
    const std::string start = brief(only.first_y, 3) + " at " + x + " = " + brief(only.first_x);
    if (only.first_x == only.last_x) return "The value is " + start + ".";
    return "The curve goes from " + start + " to " + brief(only.last_y, 3) + " at " +
           brief(only.last_x) + ".";
  }
  const bool together = std::all_of(curves.begin(), curves.end(), [&](const Ends& e) {
    return e.last_x == curves.front().last_x;
  });
  const std::string where =
      together ? "At " + x + " = " + brief(curves.front().last_x) + " the" : "At their ends the";
  const auto [low, high] =
      std::minmax_element(curves.begin(), curves.end(),
                          [](const Ends& a, const Ends& b) { return a.last_y < b.last_y; });
  if (low->last_y == high->last_y)
    return where + " curves are all at " + brief(low->last_y, 3) + ".";
  return where + " curves " + (curves.size() == 2 ? "are at " : "lie between ") + at_end(*low) +
         " and " + at_end(*high) + ".";
}

std::string points_reading(const ScatterChart& chart, const Sheet& sheet) {
  const Reader x(sheet, chart.x.column), y(sheet, chart.y.column);
  std::vector<double> values;
  for (const Record& row : sheet.rows) {
    const std::optional<double> at = x.number(row), value = y.number(row);
    if (at && value && drawable(chart.x, *at) && drawable(chart.y, *value))
      values.push_back(*value);
  }
  if (values.size() < 2) return "";
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return "The " + std::to_string(values.size()) + " points lie between " + brief(*low, 3) +
         " and " + brief(*high, 3) + ".";
}

std::string map_reading(const HeatmapChart& chart, const Sheet& sheet) {
  if (!chart.slider.empty()) return "";  // which of the maps is meant, nobody knows
  const Reader x(sheet, chart.x), y(sheet, chart.y), panel(sheet, chart.panel),
      value(sheet, chart.value.column);
  const Record* largest = nullptr;
  for (const Record& row : sheet.rows) {
    const std::optional<double> v = value.number(row);
    if (v && (largest == nullptr || *v > *value.number(*largest))) largest = &row;
  }
  if (largest == nullptr) return "";
  const std::string across = chart.x_title.empty() ? chart.x : chart.x_title;
  const std::string up = chart.y_title.empty() ? chart.y : chart.y_title;
  return "The largest value is " + brief(*value.number(*largest), 3) + ": " +
         name_of({panel.text(*largest), across + " = " + x.text(*largest),
                  up + " = " + y.text(*largest)}) +
         ".";
}

}  // namespace

std::string reading(const Chart& chart, const std::map<std::string, Sheet>& datasets) {
  const auto sheet = [&](const std::string& name) -> const Sheet& {
    static const Sheet none;
    const auto found = datasets.find(name);
    return found == datasets.end() ? none : found->second;
  };
  if (const auto* curves = std::get_if<CurveChart>(&chart))
    return curves_reading(*curves, sheet(curves->data));
  if (const auto* points = std::get_if<ScatterChart>(&chart))
    return points_reading(*points, sheet(points->data));
  if (const auto* map = std::get_if<HeatmapChart>(&chart))
    return map_reading(*map, sheet(map->data));
  return "";
}

void add_readings(Section& section, const std::map<std::string, Sheet>& datasets) {
  for (Figure& figure : section.figures) {
    if (!figure.read) continue;
    const std::string said = reading(figure.chart, datasets);
    if (!said.empty()) figure.caption += (figure.caption.empty() ? "" : " ") + said;
  }
}

void add_readings(Page& page) {
  for (Section& section : page.sections) add_readings(section, page.datasets);
}

}  // namespace esscher
