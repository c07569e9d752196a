// Figures and tables for LaTeX: as text, and compiled where there is a pdflatex.
#include "esscher/report/pgf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "esscher/base/error.h"
#include "esscher/io/file.h"
#include "esscher/report/page_json.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Every kind of chart, with names and titles that LaTeX would trip over.
Page page_of_all_kinds() {
  Page page{.title = "All kinds"};
  Sheet curve{.columns = {"L", "metric", "value", "low", "high"}, .rows = {}};
  curve.add(10, "grad_u", 0.5, 0.4, 0.65);
  curve.add(100, "grad_u", 0.05, 0.04, 0.06);
  curve.add(10, "output & more", 0.3, 0.2, 0.4);
  page.datasets["curve"] = curve;
  page.datasets["theory"] = curve;
  Sheet errors{.columns = {"log10 error"}, .rows = {}};
  for (const double x : {-3.0, -2.5, -2.4, -1.0}) errors.add(x);
  page.datasets["errors"] = errors;
  Sheet bars{.columns = {"head", "error"}, .rows = {}};
  bars.add("L0_H1", 0.3);
  bars.add("L0_H2", 0.1);
  page.datasets["bars"] = bars;
  Section section{.id = "all", .title = "All"};
  section.figures.push_back(
      {.id = "curve",
       .chart = CurveChart{.data = "curve",
                           .x = {.column = "L", .title = "prompt length L", .log = true},
                           .y = {.column = "value", .title = "D(L) in % of |σ|²", .log = true},
                           .series = "metric",
                           .low = "low",
                           .high = "high",
                           .reference_data = "theory",
                           .references = {{.axis = 'y', .value = 0.1, .label = "τ = 1_0"}}},
       .caption = "Two lines\nof a caption."});
  section.figures.push_back(
      {.id = "scatter",
       .chart = ScatterChart{.data = "curve", .x = {.column = "low"}, .y = {.column = "high"}},
       .caption = ""});
  section.figures.push_back(
      {.id = "histogram",
       .chart = HistogramChart{.data = "errors", .x = {.column = "log10 error"}, .bins = 5},
       .caption = ""});
  section.figures.push_back(
      {.id = "bars",
       .chart = BarChart{.data = "bars", .category = "head", .y = {.column = "error"}},
       .caption = ""});
  section.figures.push_back(
      {.id = "map",
       .chart =
           HeatmapChart{.data = "bars", .x = "head", .y = "head", .value = {.column = "error"}},
       .caption = ""});
  page.sections.push_back(std::move(section));
  return page;
}

RecordTable some_table() {
  RecordTable table;
  const auto add = [&](const char* name, ColumnType type) {
    Column& column = table.columns.emplace_back();
    column.name = name;
    column.type = type;
  };
  add("metric", ColumnType::text);
  add("L", ColumnType::integer);
  add("D", ColumnType::real);
  add("std_error", ColumnType::real);
  add("low", ColumnType::real);
  table.rows = {{std::string("grad_u"), std::int64_t{10}, 0.123456, 0.0021, 0.12},
                {std::string("output"), std::int64_t{100}, 1.5e-9, 0.0, Value()}};
  return table;
}

TEST(Latex, NumbersCarryTheirError) {
  EXPECT_EQ(latex_number(0.123456, 0.0021), "$0.1235(21)$");
  EXPECT_EQ(latex_number(1.23456e-7, 5.6e-9), "$1.235(56) \\times 10^{-7}$");
  EXPECT_EQ(latex_number(12.5, 3.0), "$12.5(30)$");
  EXPECT_EQ(latex_number(-0.5, 0.0123), "$-0.500(12)$");
  EXPECT_EQ(latex_number(1.5e-9), "$1.5 \\times 10^{-9}$");
  EXPECT_EQ(latex_number(0.25), "$0.25$");
  EXPECT_EQ(latex_number(HUGE_VAL), "$\\infty$");
}

TEST(Latex, TextIsEscaped) {
  EXPECT_EQ(latex_text("50 % of a_b & c"), "50 \\% of a\\_b \\& c");
  EXPECT_EQ(latex_text("σ² → ∞"), "$\\sigma$$^2$ $\\to$ $\\infty$");
  EXPECT_EQ(latex_text("日"), "?");
}

TEST(Latex, TableJoinsValueAndError) {
  const std::string tex = latex_table(some_table(), "D(L)");
  EXPECT_THAT(tex, HasSubstr("\\begin{tabular}{lrrr}"));
  EXPECT_THAT(tex, HasSubstr("metric & L & D & low \\\\"));
  EXPECT_THAT(tex, HasSubstr("grad\\_u & $10$ & $0.1235(21)$ & $0.12$ \\\\"));
  EXPECT_THAT(tex, HasSubstr("output & $100$ & $1.5 \\times 10^{-9}$ & -- \\\\"));
}

TEST(Latex, FiguresHaveTheirColumns) {
  const auto files = pgf_figures(page_json(page_of_all_kinds()));
  const std::string& curve = files.at("all-curve.tex");
  EXPECT_THAT(curve, HasSubstr("xmode=log"));
  EXPECT_THAT(curve, HasSubstr("table[x=L, y=value, y error plus expr=\\thisrow{high}-"));
  EXPECT_THAT(curve, HasSubstr("\\addlegendentry{grad\\_u}"));
  EXPECT_THAT(curve, HasSubstr("dashed, forget plot"));
  EXPECT_EQ(files.at("all-curve-1.dat"), "L value low high\n10 0.5 0.4 0.65\n100 0.05 0.04 0.06\n");
  EXPECT_THAT(files.at("all-histogram.tex"), HasSubstr("hist={bins=5}"));
  EXPECT_EQ(files.at("skipped.txt"), "all-map\n");
  for (const auto& [name, text] : files) {
    if (!name.ends_with(".tex")) continue;
    EXPECT_EQ(std::count(text.begin(), text.end(), '{'), std::count(text.begin(), text.end(), '}'))
        << name;
    EXPECT_THAT(text, Not(HasSubstr("σ"))) << name;
  }
}

TEST(Latex, PagesWithoutPlotsAreRefused) {
  Json page = page_json(page_of_all_kinds());
  for (Json& figure : page["sections"][0]["figures"]) figure["spec"].erase("usermeta");
  EXPECT_THROW(pgf_figures(page), FileError);
}

// What was written compiles with the packages of Debian (scripts/packages.txt).
TEST(Latex, Compiles) {
  if (std::system("command -v pdflatex > /dev/null") != 0) GTEST_SKIP() << "there is no pdflatex";
  std::string name = (std::filesystem::temp_directory_path() / "esscher.XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(name.data());
  auto files = pgf_figures(page_json(page_of_all_kinds()));
  files["table.tex"] = latex_table(some_table(), "D(L)");
  files["use.tex"] =
      "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n\\input{table}\n"
      "\\end{document}\n";
  for (const auto& [file, text] : files) write_text(folder / file, text);
  for (const auto& [file, text] : files) {
    if (!file.ends_with(".tex") || file == "table.tex") continue;
    const std::string command = "cd '" + folder.string() +
                                "' && pdflatex -interaction=nonstopmode -halt-on-error " + file +
                                " > log.txt < /dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0) << file << "\n" << read_text(folder / "log.txt");
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace esscher
