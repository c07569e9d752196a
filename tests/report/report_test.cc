#include "esscher/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "esscher/base/error.h"
#include "esscher/report/chart_page.h"
#include "esscher/report/data.h"
#include "esscher/report/detail/table_html.h"
#include "esscher/report/html.h"
#include "esscher/report/page_json.h"
#include "esscher/report/vega_lite.h"
#include "tests/report/demo_row.h"
#include "tests/store/temporary.h"

namespace esscher {
namespace {

using testing::DemoRow;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Temporary;

Run small_run(const Temporary& tmp, int rows = 5) {
  auto run = Run::create_or_resume(tmp / "a", {"demo", "x = 1 # <b>\n", 3});
  std::vector<DemoRow> all;
  for (int i = 1; i <= rows; ++i) {
    all.push_back({.L = i,
                   .metric = i % 2 == 0 ? "odd" : "even",
                   .value = 1.0 / i,
                   .std_error = 1e-3 / (i + 0.1)});
  }
  run.commit("k", all, 0.1, "exact");
  return run;
}

TEST(Html, Escapes) {
  EXPECT_EQ(escape_html("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  EXPECT_EQ(prose("a `b<c` d\n\ne"), "<p>a <code>b&lt;c</code> d</p>\n<p>e</p>\n");
  EXPECT_EQ(prose_inline("odd ` tick"), "odd ` tick");
  const std::string text = script_json(dump({{"x", "</script>"}}));
  EXPECT_THAT(text, Not(HasSubstr("<")));
  EXPECT_EQ(parse_json("x", text)["x"], "</script>");
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

TEST(Html, NumbersAreWrittenForReaders) {
  EXPECT_EQ(readable_numbers("at L = 1e6, 2.5e-07 and 4.253e+05"),
            "at L = 10⁶, 2.5×10⁻⁷ and 4.253×10⁵");
  EXPECT_EQ(readable_numbers("-0.5 between -1e6 and [-2, 3] at 2026-11-19, run-7, --eps -x"),
            "−0.5 between −10⁶ and [−2, 3] at 2026-11-19, run-7, --eps -x");
  EXPECT_EQ(readable_numbers("from L = inf on, at L = inf. L = infinite, info"),
            "from L = ∞ on, at L = ∞. L = infinite, info");
  for (const char* same : {"1.5", "e5", "x1e5", "1e", "1e5b", "0x1e-3z", "model-2e"}) {
    EXPECT_EQ(readable_numbers(same), same);
  }
  EXPECT_EQ(prose_inline("ln L / L^{c/2} and b_{1} < 1e4 but `1e4^{x}`"),
            "ln L / L<sup>c/2</sup> and b<sub>1</sub> &lt; 10⁴ but <code>1e4^{x}</code>");
  EXPECT_EQ(prose_inline("open ^{ brace"), "open ^{ brace");
}

// Values are rounded to two digits of their error, and decimal points stand below each other.
TEST(Html, TablesRoundToTheErrorAndAlign) {
  PageTable table{.title = "t", .sheet = {{"L", "risk", "standard error", "flow"}, {}}};
  table.sheet.add(10, 0.123456, 0.0042, "stationary");
  table.sheet.add(100, 12.5, 0.31, "a long text that may be broken in lines");
  table.sheet.add(1000, std::optional<double>(), std::optional<double>(), "t < 1");
  const std::string html = table_html(table);
  EXPECT_THAT(html, HasSubstr(">0.1235</td>"));
  EXPECT_THAT(html, HasSubstr(">12.50\u2007\u2007</td>"));
  EXPECT_THAT(html, HasSubstr("data-value=\"0.123456\""));
  EXPECT_THAT(html, HasSubstr("<td class=\"num\">–")) << "what is absent stands with the numbers";
  EXPECT_THAT(html, HasSubstr("t &lt; 1"));
  PageTable plain{.title = "t", .sheet = {{"x"}, {}}};
  plain.sheet.add(1.5);
  plain.sheet.add(20.0);
  plain.sheet.add(0.0625);
  EXPECT_THAT(table_html(plain), HasSubstr(">20\u2008\u2007\u2007\u2007\u2007</td>"));
  EXPECT_THAT(table_html(plain), HasSubstr(">1.5\u2007\u2007\u2007</td>"));
}

// Errors of quadrature do not bring sixteen digits to the page, what is expected has the digits of
// its value, and files keep all digits.
TEST(Html, TablesOfVerdictsHaveTheDigitsThatCanBeRead) {
  PageTable table{.title = "What was judged",
                  .sheet = {{"figure", "value", "error", "expected", "tolerance"}, {}}};
  table.sheet.add("quadrature", 0.1234567890123456, 3e-15, 0.1234567890123001, 1e-6);
  table.sheet.add("sampled", 0.04212345, 0.00041, 0.0421999999, 0.01);
  table.sheet.add("closed form", 17190.87654321, 0.0, 17190.87654322, 1e-9);
  table.sheet.add("nothing", 0.0, 1e-17, 0.0, 0.0);
  const std::string html = table_html(table);
  EXPECT_THAT(html, HasSubstr(">0.123457</td>"));
  EXPECT_THAT(html, HasSubstr(">0.04212\u2007</td>"));
  EXPECT_THAT(html, HasSubstr(">0.04220\u2007</td>"));
  EXPECT_THAT(html, HasSubstr(">17190.9\u2007\u2007\u2007\u2007\u2007</td>"));
  EXPECT_THAT(html, HasSubstr(">0\u2008\u2007\u2007\u2007\u2007\u2007\u2007</td>"));
  EXPECT_THAT(html, HasSubstr("data-value=\"0.1234567890123456\""));
  Page page;
  page.sections.push_back({.id = "s", .title = "S", .tables = {table}});
  EXPECT_THAT(dump(page_json(page)), HasSubstr("0.1234567890123456"));
}

TEST(Tables, WordsOfFilesAreSaidAsAReaderSaysThem) {
  Sheet sheet{.columns = {"model", "status", "exponent at L = 7.5e+05"}, .rows = {}};
  sheet.add("infinity", "t_end", 0.5);
  sheet.add("bayes", "stationary", 0.25);
  const std::string html = table_html({.title = "Flows", .sheet = sheet});
  EXPECT_THAT(html, HasSubstr(">infinite prompt</td>"));
  EXPECT_THAT(html, HasSubstr(">end of its time</td>"));
  EXPECT_THAT(html, HasSubstr(">Bayes</td>"));
  EXPECT_THAT(html, HasSubstr(">exponent at L = 7.5×10⁵<"));
  EXPECT_THAT(html, Not(HasSubstr("t_end")));
}

TEST(Html, HeadsOfTablesAreWords) {
  PageTable table{.title = "flows",
                  .sheet = {{"L", "sup_distance", "sup_gap", "sup_gap_std_error"}, {}}};
  table.sheet.add(Length::infinity(), 0.5, 0.25, 0.01);
  const std::string html = table_html(table);
  for (const char* head :
       {">L<", ">largest distance<", ">sup gap<", ">its standard error<", ">∞<"}) {
    EXPECT_THAT(html, HasSubstr(head));
  }
  EXPECT_THAT(html, Not(HasSubstr("_")));
}

TEST(Html, CellTexts) {
  EXPECT_EQ(cell_text(0.1 + 0.2), "0.3");
  EXPECT_EQ(cell_text(cell(123456789)), "123456789");
  EXPECT_EQ(cell_text({}), "–");
  EXPECT_EQ(cell_text(cell(Length::infinity())), "inf");
  EXPECT_EQ(cell_text(cell(std::optional<double>())), "–");
}

TEST(Data, ThinningKeepsSeriesAndEnds) {
  Sheet sheet{{"x", "s"}, {}};
  for (int i = 0; i < 9000; ++i) sheet.add(i, i % 3 == 0 ? "a" : "b");
  sheet.add(-1, "rare");
  const Sheet few = thinned(sheet, 300);
  EXPECT_LE(few.rows.size(), 310u);
  EXPECT_GE(few.rows.size(), 290u);
  EXPECT_EQ(few.rows.front()[0], cell(0));
  EXPECT_EQ(few.rows.back()[1], cell("rare"));
  EXPECT_EQ(few.rows[few.rows.size() - 2][0], cell(8999));
  EXPECT_EQ(thinned(few, 1000).rows, few.rows);
}

// A page survives the store: what a section says, shows and draws reads back.
TEST(Page, ReadsBackFromItsDocument) {
  Page page{.title = "T", .lead = "lead"};
  Section section{.id = "s", .title = "S"};
  section.verdict = Verdict::unless("", VerdictStatus::holds_fitted, "good");
  section.hypotheses = {"a", "b"};
  section.figures.push_back(
      {.id = "f",
       .chart = CurveChart{.data = "d", .x = {.column = "x"}, .y = {.column = "y"}},
       .caption = "c"});
  section.tables.push_back({.title = "t", .sheet = {{"x", "y"}, {}}});
  section.tables[0].sheet.add(1, 0.5);
  section.tables[0].sheet.add("one", std::optional<double>());
  page.sections.push_back(section);
  page.datasets["d"] = {{"x", "y"}, {}};
  page.datasets["d"].add(1, 2.5);
  const Page back = page_from_json(page_json(page));
  EXPECT_EQ(page_json(back), page_json(page));
  EXPECT_EQ(back.sections[0].verdict, section.verdict);
  EXPECT_EQ(back.sections[0].tables[0].sheet.rows, section.tables[0].sheet.rows);
}

TEST(Page, TroubleMakesAVerdictFail) {
  const Verdict verdict = Verdict::unless("the gap grows", VerdictStatus::holds, "fine");
  EXPECT_EQ(verdict, (Verdict{VerdictStatus::fails, "Fails: the gap grows."}));
}

TEST(Page, ARowMustFitItsColumns) {
  Sheet sheet{{"x", "y"}, {}};
  EXPECT_THROW(sheet.add(1), DimensionError);
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
  const Json& described = spec["usermeta"]["esscher"];
  EXPECT_EQ(described["kind"], "curve");
  EXPECT_EQ(described["y"], (Json{{"column", "v.1"}, {"log", true}}));
  EXPECT_EQ(described["references"][0]["axis"], "y");
  EXPECT_FALSE(described.contains("facet")) << "what is empty is left out";
  EXPECT_THROW(curve_chart({.data = "d", .x = {"x"}, .y = {"y"}, .low = "low"}), ArgumentError);
  EXPECT_THROW(curve_chart({.data = "d", .x = {"x"}, .y = {"y"}, .references = {{'z', 1, ""}}}),
               ArgumentError);
  EXPECT_THROW(heatmap_chart({.data = "d", .x = "x", .y = "y", .value = {"v"}, .slider = "t"}),
               ArgumentError);
}

TEST(ChartPage, IsWholeAndKeepsMarkupAsData) {
  const std::string html = chart_page(R"({"mark": "bar", "title": "</script><b>"})");
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  EXPECT_THAT(html, Not(HasSubstr("</script><b>")));
  EXPECT_EQ(html.find("http://"), std::string::npos);
  EXPECT_THROW(chart_page("[1]"), FileError);
  EXPECT_THROW(chart_page("{"), Error);
}

// One line counts the verdicts; sections of one command say it once; the setting stands in the head.
TEST(Report, SumsUpWhatItSays) {
  const Temporary tmp;
  const auto run = small_run(tmp);
  Page page{.title = "T", .lead = "lead", .setting = "Tokens are few."};
  for (const VerdictStatus status :
       {VerdictStatus::holds, VerdictStatus::holds, VerdictStatus::holds_fitted}) {
    page.sections.push_back({.id = "s", .title = "S", .verdict = Verdict{status, "text"}});
    page.sections.back().statement = "It is so.";
    page.sections.back().rerun = "esscher again";
  }
  // A head that is linear has a verdict and states nothing.
  page.sections.push_back(
      {.id = "head", .title = "H", .verdict = Verdict{VerdictStatus::holds, "linear"}});
  const std::string html = report_html(run, page);
  EXPECT_THAT(html, HasSubstr("Three statements: two hold, one holds with fitted constants."));
  EXPECT_THAT(html, HasSubstr("Tokens are few."));
  EXPECT_EQ(html.find("esscher again"), html.rfind("esscher again"));
  EXPECT_EQ(page_from_json(page_json(page)).setting, page.setting);
}

TEST(Report, GenericWhenNothingIsStored) {
  const Temporary tmp;
  const auto run = small_run(tmp);
  const std::string html = report_html(run, page_of(run));
  EXPECT_THAT(html, HasSubstr("esscher demo"));
  EXPECT_THAT(html, HasSubstr("the largest 1 at L = 1"));
  EXPECT_THAT(html, HasSubstr("x = 1 # &lt;b&gt;"));
  EXPECT_THAT(html, Not(HasSubstr("# <b>")));
  const Json figures = report_figures(page_of(run));
  ASSERT_EQ(figures["figures"].size(), 1u);
  EXPECT_EQ(figures["figures"][0]["spec"]["datasets"]["rows"].size(), 5u);
}

TEST(Report, SaysWhatIsWrongWithTheDocument) {
  const Temporary tmp;
  auto run = small_run(tmp);
  run.set_document("report", {{"sections", {{{"verdict", {{"status", "maybe"}}}}}}});
  EXPECT_THROW(report_html(run, page_of(run)), ArgumentError);
  run.set_document("report", {{"title", 3}});
  EXPECT_THROW(report_html(run, page_of(run)), ArgumentError);
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
