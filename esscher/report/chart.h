// The charts of reports, as plain data: names of columns in a named dataset of the page
// (report/page.h), and what the axes and legends say. report/vega_lite.h turns a chart into a
// Vega-Lite specification; colours, fonts and sizes come from the page, so that light, dark and
// print share one specification.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace esscher {

struct Axis {
  std::string column;
  std::string title = {};  // the column's name if empty
  bool log = false;        // rows with values <= 0 are not drawn on a log axis
  // These ends of the axis are fixed, e.g. to cut outliers off.
  std::optional<double> min = {};
  std::optional<double> max = {};
};

// A straight line crosses the figure at a value of x ('x', vertical) or of y ('y', horizontal).
struct ReferenceLine {
  char axis = 'y';
  double value = 0;
  std::string label = {};
};

// There is one curve per series, with a confidence band low..high and points.
struct CurveChart {
  std::string data;  // name of a dataset of the report
  Axis x;
  Axis y;
  std::string series = {};  // colour; "" for a single curve
  std::string series_title = {};
  std::vector<std::string> series_order = {};  // legend order; alphabetical if empty
  std::string low = {};                        // columns of the band, both or none
  std::string high = {};
  // A second dataset with the same columns is drawn dashed: theory behind measurements.
  std::string reference_data = {};
  std::vector<ReferenceLine> references = {};
  std::vector<std::string> tooltip = {};  // columns; x, y, series and band if empty
  std::string facet = {};                 // one panel per value of this column
  bool points = true;
  int height = 340;
};

struct ScatterChart {
  std::string data;
  Axis x;
  Axis y;
  std::string series = {};
  std::string series_title = {};
  bool diagonal = false;  // the line x = y over the range of x
  std::vector<ReferenceLine> references = {};
  std::vector<std::string> tooltip = {};
  int height = 340;
};

// Bars of y stand side by side per series in each category, with error bars low..high.
struct BarChart {
  std::string data;
  std::string category;
  std::string category_title = {};
  Axis y;
  std::string series = {};
  std::string series_title = {};
  std::string low = {};
  std::string high = {};
  std::vector<ReferenceLine> references = {};  // axis 'y' only
  std::vector<std::string> tooltip = {};
  bool sorted = false;  // by falling y instead of the order of the data
  int height = 300;
};

struct HistogramChart {
  std::string data;
  Axis x;
  int bins = 40;
  std::string series = {};
  std::string series_title = {};
  std::vector<ReferenceLine> references = {};  // axis 'x' only
  int height = 260;
};

// Each cell of an (x, y) grid has a colour. A slider chooses among the values of a numeric column.
struct HeatmapChart {
  std::string data;
  std::string x;
  std::string x_title = {};
  std::string y;
  std::string y_title = {};
  Axis value;
  bool diverging = false;   // white at 0, for signed values
  std::string slider = {};  // numeric column; "" for none
  std::string slider_title = {};
  std::vector<double> slider_values = {};  // distinct values in order, required with a slider
  std::vector<std::string> tooltip = {};
  int height = 340;
};

// This is a specification that is there already, as JSON text, from a stored page.
struct VegaLiteChart {
  std::string spec;
};

using Chart =
    std::variant<CurveChart, ScatterChart, BarChart, HistogramChart, HeatmapChart, VegaLiteChart>;

}  // namespace esscher
