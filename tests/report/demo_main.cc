// demo DIR [ROWS]: a run with every kind of figure, table and verdict, and its report, for the
// browser tests. With ROWS a run of that many rows and no report document.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "esscher/random/stream.h"
#include "esscher/report/report.h"
#include "esscher/report/vega_lite.h"
#include "esscher/store/run.h"
#include "tests/report/demo_row.h"

namespace {

using esscher::Json;

Json curves() {
  Json rows = Json::array();
  const esscher::Stream stream(1, 1);
  std::uint64_t i = 0;
  for (const char* metric : {"output", "gradient in V", "gradient in U"}) {
    const double c = metric[0] == 'o' ? 3 : metric[12] == 'V' ? 8 : 20;
    for (double L = 10; L < 2e5; L *= 2) {
      const double value = c / L * (1 + 4 / L) * std::exp(0.03 * stream.normal(i++));
      const double error = 0.08 * value;
      rows.push_back({{"L", std::lround(L)},
                      {"metric", metric},
                      {"value", value},
                      {"low", value - 2 * error},
                      {"high", value + 2 * error}});
    }
  }
  return rows;
}

Json theory() {
  Json rows = Json::array();
  for (const char* metric : {"output", "gradient in V", "gradient in U"}) {
    const double c = metric[0] == 'o' ? 3 : metric[12] == 'V' ? 8 : 20;
    for (double L = 10; L < 2e5; L *= 2) {
      rows.push_back({{"L", std::lround(L)}, {"metric", metric}, {"value", c / L}});
    }
  }
  return rows;
}

Json cloud() {
  Json rows = Json::array();
  const esscher::Stream stream(1, 2);
  for (std::uint64_t i = 0; i < 300; ++i) {
    const double x = std::exp(stream.normal(2 * i));
    rows.push_back({{"head", "layer " + std::to_string(i / 75)},
                    {"predicted", x},
                    {"measured", x * std::exp(0.2 * stream.normal(2 * i + 1))}});
  }
  return rows;
}

Json bars() {
  Json rows = Json::array();
  for (const char* model : {"softmax", "linear", "Bayes"}) {
    for (const char* length : {"L = 16", "L = 64", "L = 256"}) {
      const double risk = (model[0] == 's'   ? 0.5
                           : model[0] == 'l' ? 0.7
                                             : 0.4) *
                          (length[4] == '1' ? 2 : 1);
      rows.push_back({{"length", length},
                      {"model", model},
                      {"risk", risk},
                      {"low", risk * 0.95},
                      {"high", risk * 1.05}});
    }
  }
  return rows;
}

Json grid() {
  Json rows = Json::array();
  for (const double t : {0.0, 1.0, 10.0, 100.0}) {
    for (int i = 0; i < 8; ++i) {
      for (int j = 0; j < 8; ++j) {
        const double u = (i == j ? 1.0 : 0.2 * std::sin(i + 2 * j)) * (1 - std::exp(-t / 5));
        rows.push_back({{"t", t}, {"row", i}, {"column", j}, {"U", u}});
      }
    }
  }
  return rows;
}

Json section_rate() {
  const char* formula =
      "<math display=\"block\"><mi>D</mi><mo>(</mo><mi>L</mi><mo>)</mo><mo>=</mo><msup><mrow><mi "
      "mathvariant=\"normal\">E</mi><mo>‖</mo><msub><mi>T</mi><mi>L</mi></msub><mo>−</mo><msub>"
      "<mi>T</mi><mi>∞</mi></msub><mo>‖</mo></mrow><mn>2</mn></msup><mo>≤</mo><mfrac><mi>c</mi>"
      "<mi>L</mi></mfrac></math>";
  return {
      {"id", "rate"},
      {"title", "The error of a finite prompt falls like 1/L"},
      {"statement",
       "For sub-Gaussian tokens the mean square distance between attention on L "
       "tokens and its infinite-prompt limit is at most `c / L`."},
      {"hypotheses", {"tokens are independent", "the query has norm at most 1"}},
      {"verdict", {{"status", "holds"}, {"text", "Slope −1.003 ± 0.004 over four decades of L."}}},
      {"formulas", {formula}},
      {"figures",
       {{{"id", "curves"},
         {"caption",
          "Mean square error against prompt length. All three fall with slope −1 and "
          "lie on the predicted constants (dashed) from L = 40 on."},
         {"spec", esscher::curve_chart(
                      {.data = "curves",
                       .x = {.column = "L", .title = "prompt length L", .log = true},
                       .y = {.column = "value", .title = "mean square error", .log = true},
                       .series = "metric",
                       .series_title = "error of",
                       .low = "low",
                       .high = "high",
                       .reference_data = "theory",
                       .references = {{'y', 1e-3, "tolerance"}, {'x', 1e3, "L = 1000"}}})}}}},
      {"tables",
       {{{"title", "Fitted rates"},
         {"columns", {"metric", "slope", "constant"}},
         {"rows",
          {{"output", -1.003, 3.01}, {"grad_v", -0.998, 7.96}, {"grad_u", -1.001, 20.4}}}}}},
      {"rerun", "esscher concentration --config experiments/rate.toml --seed 7"}};
}

Json section_others() {
  return {
      {"id", "others"},
      {"title", "Every other kind of figure <b>& markup that must stay text</b>"},
      {"verdict", {{"status", "fails"}, {"text", "A verdict that fails, for its colour."}}},
      {"text",
       "Text with `code` and </script><script>alert(1)</script> inside.\n\nA second paragraph."},
      {"formulas", {"<math onclick=\"alert(1)\"><mi>x</mi></math>"}},
      {"figures",
       {{{"id", "scatter"},
         {"caption", "Predicted against measured, one point a head."},
         {"spec", esscher::scatter_chart({.data = "cloud",
                                          .x = {.column = "predicted", .log = true},
                                          .y = {.column = "measured", .log = true},
                                          .series = "head",
                                          .diagonal = true})}},
        {{"id", "bars"},
         {"caption", "Risk per model and length."},
         {"spec", esscher::bar_chart({.data = "bars",
                                      .category = "length",
                                      .y = {.column = "risk"},
                                      .series = "model",
                                      .low = "low",
                                      .high = "high",
                                      .references = {{'y', 0.3, "noise"}}})}},
        {{"id", "histogram"},
         {"caption", "Distribution of the measured values."},
         {"spec",
          esscher::histogram_chart(
              {.data = "cloud", .x = {.column = "measured"}, .references = {{'x', 1, "median"}}})}},
        {{"id", "heatmap"},
         {"caption", "The parameter U as time goes on."},
         {"spec", esscher::heatmap_chart({.data = "grid",
                                          .x = "column",
                                          .y = "row",
                                          .value = {.column = "U"},
                                          .diverging = true,
                                          .slider = "t",
                                          .slider_title = "time",
                                          .slider_values = {0, 1, 10, 100}})}}}}};
}

void fill(esscher::Run& run, std::uint64_t rows) {
  const esscher::Stream stream(3, 3);
  std::vector<esscher::FinishedCell> cells;
  std::vector<std::string> keys;
  const std::uint64_t per_cell = 100;
  for (std::uint64_t i = 0; i < rows; i += per_cell) {
    std::vector<esscher::testing::DemoRow> block;
    for (std::uint64_t j = i; j < std::min(rows, i + per_cell); ++j) {
      block.push_back({.L = static_cast<std::int64_t>(j) + 1,
                       .metric = j % 3 == 0 ? "output" : "grad_v",
                       .value = std::exp(stream.normal(j)) / static_cast<double>(j + 1),
                       .std_error = std::abs(stream.normal(j + rows)) * 1e-3});
    }
    const std::string key = "block=" + std::to_string(i);
    keys.push_back(key);
    const std::string text =
        esscher::rows_text(esscher::table_of(std::span<const esscher::testing::DemoRow>(block)));
    cells.push_back({key, text, 0.01, "sampled"});
  }
  run.declare(keys, esscher::columns_of<esscher::testing::DemoRow>());
  run.commit(cells);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::uint64_t rows = argc > 2 ? std::stoull(argv[2]) : 0;
  auto run = esscher::Run::create_or_resume(
      argv[1], {"demo", "[sweep]\nlengths = { from = 10, to = 1e5 } # <script>\n", 7});
  fill(run, rows == 0 ? 300 : rows);
  if (rows == 0) {
    run.set_document("report", {{"title", "How long is long enough?"},
                                {"lead",
                                 "Attention on a prompt of L tokens against its "
                                 "infinite-prompt limit, for outputs and gradients."},
                                {"sections", {section_rate(), section_others()}},
                                {"datasets",
                                 {{"curves", curves()},
                                  {"theory", theory()},
                                  {"cloud", cloud()},
                                  {"bars", bars()},
                                  {"grid", grid()}}}});
  }
  esscher::write_report(run, run.directory() / "report.html");
  return 0;
}
