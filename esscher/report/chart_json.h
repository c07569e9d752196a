// The description of a chart as JSON, which is what web/charts/ draws.
#pragma once

#include "esscher/json/json.h"
#include "esscher/report/chart.h"

namespace esscher {

// {"kind": "curve", "data": .., "x": {"column": .., "title": .., "log": ..}, ..}: the fields of the
// chart by their names, without those that are empty.
Json chart_json(const CurveChart& chart);
Json chart_json(const ScatterChart& chart);
Json chart_json(const BarChart& chart);
Json chart_json(const HistogramChart& chart);
Json chart_json(const HeatmapChart& chart);

}  // namespace esscher
