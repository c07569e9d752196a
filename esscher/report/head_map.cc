#include "esscher/report/detail/head_map.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "esscher/base/number_text.h"

namespace esscher {
namespace {

constexpr int kSliderStops = 40;

void add_head(Sheet& sheet, double time, const Readout& head) {
  const Index D = head.dim();
  for (Index i = 0; i <= D; ++i) {
    const bool in_U = i < D;
    const std::string row = in_U ? "U" + std::to_string(i) : "V last";
    for (Index j = 0; j < D; ++j) {
      sheet.add(time, row, std::to_string(j), in_U ? head.U(i, j) : head.r(j));
    }
  }
}

}  // namespace

Figure head_map(Page& page, const std::string& id, const std::vector<TimedHead>& heads,
                const std::string& time, const std::string& who) {
  HeatmapChart chart{
      .data = id, .x = "column", .x_title = "column", .y = "row", .value = {.column = "value"}};
  chart.diverging = true;
  chart.slider = time;
  chart.slider_title = time == "t" ? "time" : time;
  Sheet sheet{.columns = {time, "row", "column", "value"}, .rows = {}};
  double largest = 0;
  const std::size_t n = heads.size();
  for (std::size_t k = 0; n > 0 && k < kSliderStops; ++k) {
    const TimedHead& at = heads[k * (n - 1) / (kSliderStops - 1)];
    // Six digits are what a reader can use; a stop of the slider and its rows keep the same ones.
    const double stop = std::stod(brief(at.time, 6));
    if (!chart.slider_values.empty() && stop <= chart.slider_values.back()) continue;
    chart.slider_values.push_back(stop);
    add_head(sheet, stop, at.head);
    largest = std::max({largest, at.head.U.cwiseAbs().maxCoeff(), at.head.r.cwiseAbs().maxCoeff()});
  }
  if (largest > 0) {  // the same colour strength for the same size, whatever the sign
    chart.value.min = -largest;
    chart.value.max = largest;
  }
  page.datasets[id] = std::move(sheet);
  return {.id = id,
          .chart = std::move(chart),
          .caption = who +
                     "U = K'Q entry by entry, and the last row of V, which the prediction "
                     "reads. The largest entry is " +
                     brief(largest) + "."};
}

}  // namespace esscher
