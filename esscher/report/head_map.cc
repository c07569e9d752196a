#include "esscher/report/detail/head_map.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "esscher/base/number_text.h"

namespace esscher {
namespace {

constexpr int kSliderStops = 40;
constexpr const char* kU = "entries of U";
constexpr const char* kV = "last row of V";

void add_head(Sheet& sheet, double time, const std::string& which, const Readout& head) {
  const Index D = head.dim();
  for (Index i = 0; i <= D; ++i) {
    const bool in_U = i < D;
    const std::string row = in_U ? std::to_string(i + 1) : "V";
    for (Index j = 0; j < D; ++j) {
      sheet.add(time, which, in_U ? kU : kV, row, std::to_string(j + 1),
                in_U ? head.U(i, j) : head.r(j));
    }
  }
}

// "between -0.3 and 0.4"
std::string range_text(const std::vector<Readout>& heads, bool of_U) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const Readout& head : heads) {
    low = std::min(low, of_U ? head.U.minCoeff() : head.r.minCoeff());
    high = std::max(high, of_U ? head.U.maxCoeff() : head.r.maxCoeff());
  }
  return "between " + brief(low, 3) + " and " + brief(high, 3);
}

}  // namespace

Figure head_map(Page& page, const std::string& id, const std::vector<TimedHeads>& path,
                const std::string& time) {
  HeatmapChart chart{.data = id,
                     .x = "column",
                     .y = "row",
                     .value = {.column = "value"},
                     .part = "matrix",
                     .diverging = true,
                     .slider = time,
                     .slider_title = time == "t" ? "time" : time};
  const std::size_t count = path.empty() ? 0 : path.front().heads.size();
  if (count > 1) chart.panel = "head";
  Sheet sheet{.columns = {time, "head", "matrix", "row", "column", "value"}, .rows = {}};
  const std::size_t n = path.size();
  for (std::size_t k = 0; n > 0 && k < kSliderStops; ++k) {
    const TimedHeads& at = path[k * (n - 1) / (kSliderStops - 1)];
    // Six digits are what a reader can use; a stop of the slider and its rows keep the same ones.
    const double stop = std::stod(brief(at.time, 6));
    if (!chart.slider_values.empty() && stop <= chart.slider_values.back()) continue;
    chart.slider_values.push_back(stop);
    for (std::size_t h = 0; h < at.heads.size(); ++h) {
      add_head(sheet, stop, "head " + std::to_string(h + 1), at.heads[h]);
    }
  }
  page.datasets[id] = std::move(sheet);
  std::string caption = "No entry is there.";
  if (n > 0) {
    caption = "At the end the entries of U lie " + range_text(path.back().heads, true) +
              ", those of the row of V that the prediction reads " +
              range_text(path.back().heads, false) + ". The slider shows earlier times.";
  }
  return {.id = id, .chart = std::move(chart), .caption = std::move(caption)};
}

}  // namespace esscher
