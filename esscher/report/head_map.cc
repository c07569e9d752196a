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
constexpr const char* kWholeV = "entries of V";

void add_head(Sheet& sheet, double time, const std::string& which, const ShownHead& head) {
  const Index D = head.U.cols(), m = head.V.rows();
  const auto add = [&](const char* part, const std::string& row, const auto& values) {
    for (Index j = 0; j < D; ++j) {
      sheet.add(time, which, part, row, std::to_string(j + 1), values(j));
    }
  };
  for (Index i = 0; i < D; ++i) add(kU, std::to_string(i + 1), head.U.row(i));
  for (Index i = 0; i < m; ++i) {
    add(m == 1 ? kV : kWholeV, m == 1 ? "V" : "V" + std::to_string(i + 1), head.V.row(i));
  }
}

// "between -0.3 and 0.4"
std::string range_text(const std::vector<ShownHead>& heads, Matrix ShownHead::*matrix) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const ShownHead& head : heads) {
    low = std::min(low, (head.*matrix).minCoeff());
    high = std::max(high, (head.*matrix).maxCoeff());
  }
  return "between " + brief(low, 3) + " and " + brief(high, 3);
}

}  // namespace

TimedHeads timed_heads(double time, const std::vector<Readout>& heads) {
  TimedHeads out{time, {}};
  for (const Readout& head : heads) out.heads.push_back({head.U, head.r.transpose()});
  return out;
}

TimedHeads timed_heads(double time, const Layer& layer) {
  TimedHeads out{time, {}};
  for (const LayerHead& head : layer.heads) out.heads.push_back({head.U, head.V});
  return out;
}

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
  if (n > 0 && count > 0) {
    const bool row = path.back().heads.front().V.rows() == 1;
    caption = "At the end the entries of U lie " + range_text(path.back().heads, &ShownHead::U) +
              (row ? ", those of the row of V that the prediction reads " : ", those of V ") +
              range_text(path.back().heads, &ShownHead::V) + ". The slider shows earlier times.";
  }
  return {.id = id, .chart = std::move(chart), .caption = std::move(caption)};
}

}  // namespace esscher
