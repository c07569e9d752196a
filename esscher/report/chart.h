// The charts of reports, as plain data: names of columns in a named dataset of the page
// (report/page.h), and what the axes and legends say. report/vega_lite.h turns a chart into a
// Vega-Lite specification that carries this description; web/charts/ draws the description, for the
// width and the colours of the page, in reports and in notebooks.
//
// Series called "SYMBOL = NUMBER" ("L = 100", "σ = 1.2") are ordered: they get one sequential scale
// in numeric order and labels at the ends of their lines. All other names are categories, and a name
// has one colour on a whole page.
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
  std::vector<std::string> series_order = {};  // legend order; that of the data if empty
  std::string dash = {};                       // a second column of series, told apart by dashes
  bool quiet = false;    // all series are thin and grey, so that the reference is seen
  std::string low = {};  // columns of the band, both or none
  std::string high = {};
  // A second dataset with the same columns is drawn dashed over the data: predictions.
  std::string reference_data = {};
  std::string reference_title = {};  // what the legend calls it
  std::vector<ReferenceLine> references = {};
  std::vector<std::string> tooltip = {};  // columns; x, y, series and band if empty
  std::string facet = {};                 // one panel per value of this column
  bool points = true;
};

struct ScatterChart {
  std::string data;
  Axis x;
  Axis y;
  std::string series = {};
  std::string series_title = {};
  std::string label = {};  // column of names beside the points, where there is room
  bool diagonal = false;   // the line x = y over the range of x
  std::vector<ReferenceLine> references = {};
  std::vector<std::string> tooltip = {};
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
};

// Counts per bin; on a log axis the bins are even in the logarithm.
struct HistogramChart {
  std::string data;
  Axis x;
  int bins = 40;
  std::string count_title = "count";
  std::vector<ReferenceLine> references = {};  // axis 'x' only
};

// Each cell of an (x, y) grid has a colour. A slider chooses among the values of a numeric column.
// Panels stand in a row; they share the slider and, for each part, one scale of colours.
struct HeatmapChart {
  std::string data;
  std::string x;
  std::string x_title = {};
  std::string y;
  std::string y_title = {};
  Axis value;
  std::string panel = {};   // one grid per value of this column
  std::string part = {};    // cells with different values of this column have scales of their own
  bool diverging = false;   // pale at 0, for signed values
  std::string slider = {};  // numeric column; "" for none
  std::string slider_title = {};
  std::vector<double> slider_values = {};  // distinct values in order, required with a slider
  // A second dataset with numbers in the columns x and y (and panel) is drawn as lines over the grid,
  // one per value of its column `line`: the first solid, the second dashed, the third dotted.
  std::string lines_data = {};
  std::string line = {};
  std::vector<std::string> tooltip = {};
};

// This is a specification that is there already, as JSON text, from a stored page.
struct VegaLiteChart {
  std::string spec;
};

using Chart =
    std::variant<CurveChart, ScatterChart, BarChart, HistogramChart, HeatmapChart, VegaLiteChart>;

}  // namespace esscher
