#include "esscher/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "esscher/base/error.h"
#include "esscher/report/chart.h"
#include "esscher/report/data.h"
#include "esscher/report/html.h"
#include "tests/store/temporary.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::Temporary;

Run small_run(const Temporary& tmp, int rows = 5) {
  auto run = Run::create_or_resume(tmp / "a", {"demo", "x = 1 # <b>\n", 3});
  std::vector<Row> all;
  for (int i = 1; i <= rows; ++i) {
    all.push_back({{"L", i},
                   {"metric", i % 2 == 0 ? "odd" : "even"},
                   {"value", 1.0 / i},
                   {"std_error", 1e-3 / (i + 0.1)}});
  }
  run.commit("k", all, 0.1, "exact");
  return run;
}

TEST(Html, Escapes) {
  EXPECT_EQ(escape_html("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  EXPECT_EQ(prose("a `b<c` d\n\ne"), "<p>a <code>b&lt;c</code> d</p>\n<p>e</p>\n");
  EXPECT_EQ(prose_inline("odd ` tick"), "odd ` tick");
  EXPECT_THAT(script_json({{"x", "</script>"}}), Not(HasSubstr("<")));
  EXPECT_EQ(parse_json("x", script_json({{"x", "</script>"}}))["x"], "</script>");
}

TEST(Html, MathIsCheckedBeforeItIsTrusted) {
  const std::string good = "<math display=\"block\"><mi mathvariant=\"bold\">x</mi></math>";
  EXPECT_EQ(math_html(good), good);
  for (const char* bad :
       {"<math onclick=\"x\"><mi>x</mi></math>", "<math><script>x</script></math>", "<img src=x>",
        "<math><mi href=\"javascript:x\">x</mi></math>", "<math><mi", "<math><a>x</a></math>",
        "<math display=block></math>", "<math></math x=\"y\">", "plain"}) {
    EXPECT_THAT(math_html(bad), ::testing::StartsWith("<code>")) << bad;
    EXPECT_THAT(math_html(bad), Not(HasSubstr("<m"))) << bad;
  }
}

TEST(Html, CellTexts) {
  EXPECT_EQ(cell_text(0.1 + 0.2), "0.3");
  EXPECT_EQ(cell_text(123456789), "123456789");
  EXPECT_EQ(cell_text(nullptr), "–");
  EXPECT_EQ(cell_text("inf"), "inf");
}

TEST(Data, ThinningKeepsSeriesAndEnds) {
  Json rows = Json::array();
  for (int i = 0; i < 9000; ++i) rows.push_back({{"x", i}, {"s", i % 3 == 0 ? "a" : "b"}});
  rows.push_back({{"x", -1}, {"s", "rare"}});
  const Json few = thinned(rows, 300);
  EXPECT_LE(few.size(), 310u);
  EXPECT_GE(few.size(), 290u);
  EXPECT_EQ(few.front()["x"], 0);
  EXPECT_EQ(few.back()["s"], "rare");
  EXPECT_EQ(few[few.size() - 2]["x"], 8999);
  EXPECT_EQ(thinned(few, 1000), few);
}

TEST(Chart, NamesItsData) {
  const Json spec = curve_chart({.data = "curves",
                                 .x = {.column = "L", .log = true},
                                 .y = {.column = "v.1", .log = true},
                                 .series = "metric",
                                 .low = "low",
                                 .high = "high",
                                 .reference_data = "theory",
                                 .references = {{'y', 0.1, "here"}}});
  EXPECT_EQ(dataset_names(spec), (std::set<std::string>{"curves", "theory"}));
  EXPECT_EQ(spec["layer"][0]["params"][0]["bind"], "legend")
      << "only the first layer's legend reacts";
  EXPECT_EQ(spec["layer"][0]["encoding"]["y"]["field"], "v\\.1");
  EXPECT_THROW(curve_chart({.data = "d", .x = {"x"}, .y = {"y"}, .low = "low"}), ArgumentError);
  EXPECT_THROW(curve_chart({.data = "d", .x = {"x"}, .y = {"y"}, .references = {{'z', 1, ""}}}),
               ArgumentError);
  EXPECT_THROW(heatmap_chart({.data = "d", .x = "x", .y = "y", .value = {"v"}, .slider = "t"}),
               ArgumentError);
}

TEST(Report, GenericWhenNothingIsStored) {
  const Temporary tmp;
  const auto run = small_run(tmp);
  const std::string html = report_html(run);
  EXPECT_THAT(html, HasSubstr("esscher demo"));
  EXPECT_THAT(html, HasSubstr("the largest 1 at L = 1"));
  EXPECT_THAT(html, HasSubstr("x = 1 # &lt;b&gt;"));
  EXPECT_THAT(html, Not(HasSubstr("# <b>")));
  const Json figures = report_figures(run);
  ASSERT_EQ(figures["figures"].size(), 1u);
  EXPECT_EQ(figures["figures"][0]["spec"]["datasets"]["rows"].size(), 5u);
}

TEST(Report, SaysWhatIsWrongWithTheDocument) {
  const Temporary tmp;
  auto run = small_run(tmp);
  run.set_document("report", {{"sections", {{{"verdict", {{"status", "maybe"}}}}}}});
  EXPECT_THROW(report_html(run), ArgumentError);
  run.set_document("report", {{"title", 3}});
  EXPECT_THROW(report_html(run), ArgumentError);
}

TEST(Report, OnlyTheFileSystemIsNeeded) {
  const Temporary tmp;
  const auto run = small_run(tmp);
  write_report(run, tmp / "page.html");
  const std::string html = testing::bytes_of(tmp / "page.html");
  EXPECT_THAT(html.substr(0, 400), HasSubstr("default-src 'none'"));
  EXPECT_TRUE(Json::accept(testing::bytes_of(tmp / "page.json")));
  EXPECT_THROW(write_report(run, tmp / "missing" / "page.html"), FileError);
}

TEST(Report, HundredThousandRowsAreThinned) {
  const Temporary tmp;
  write_report(small_run(tmp, 100'000), tmp / "page.html");
  EXPECT_LT(std::filesystem::file_size(tmp / "page.html"), 5'000'000u);
  const std::string html = testing::bytes_of(tmp / "page.html");
  EXPECT_NE(html.find("id=\"rows\""), std::string::npos) << "all rows can be downloaded";
}

}  // namespace
}  // namespace esscher
