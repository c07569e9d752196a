// Charts as Vega-Lite specifications, which any viewer of Vega-Lite can draw. The description of the
// chart is in usermeta.esscher; web/charts/ draws that instead.
//
// Every chart has tooltips. Where a series column is given the legend is a switch: a click shows
// only that series, further clicks add or remove others.
#pragma once

#include "esscher/json/json.h"
#include "esscher/report/chart.h"

namespace esscher {

// Throws ArgumentError if the chart names half of a band, an unknown axis or a slider without
// values, FileError if a stored specification is not JSON.
Json vega_lite(const Chart& chart);

Json curve_chart(const CurveChart& chart);
Json scatter_chart(const ScatterChart& chart);
Json bar_chart(const BarChart& chart);
Json histogram_chart(const HistogramChart& chart);
Json heatmap_chart(const HeatmapChart& chart);

}  // namespace esscher
