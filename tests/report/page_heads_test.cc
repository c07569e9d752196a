#include "esscher/report/page_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "esscher/heads/options.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

HeadDiagnosis head_with(const std::string& name, HeadVerdict kind, const std::string& words) {
  HeadDiagnosis head;
  head.name = name;
  head.n = 300;
  head.dk = 4;
  head.dv = 4;
  head.tau2 = 1.23456;
  head.gaussian = {.lin = 0.2, .lin_c = 0.5};
  head.control_lin_c = 0.25;
  head.verdict_kind = kind;
  head.verdict = words;
  head.reason = "error 0.5";
  head.score_histogram = Vector::Constant(kHistogramBins, 0.1);
  return head;
}

TEST(HeadsPage, TheBadgeFollowsTheKindOfVerdict) {
  const auto status = [](HeadVerdict kind) { return head_badge(head_with("a", kind, "x")).status; };
  EXPECT_EQ(status(HeadVerdict::linear_here), VerdictStatus::holds);
  EXPECT_EQ(status(HeadVerdict::not_linearisable), VerdictStatus::fails);
  for (const HeadVerdict kind : {HeadVerdict::linear_from, HeadVerdict::linear_within,
                                 HeadVerdict::too_short, HeadVerdict::needs_components}) {
    EXPECT_EQ(status(kind), VerdictStatus::info) << name(kind);
  }
  EXPECT_EQ(head_badge(head_with("a", HeadVerdict::too_short, "too short to say")).text,
            "too short to say");
}

TEST(HeadsPage, TheLeadCountsHeadsInASentence) {
  const HeadDiagnosis one = head_with("a", HeadVerdict::needs_components, "needs 4 components");
  const HeadDiagnosis two = head_with("b", HeadVerdict::needs_components, "needs 2 components");
  const HeadDiagnosis three = head_with("c", HeadVerdict::linear_from, "linear from L = 9");
  EXPECT_EQ(count_sentence({one}), "1 head: 1 needs components.");
  EXPECT_EQ(count_sentence({one, two, three}),
            "3 heads: 1 is linear from a longer prompt, 2 need components.");
}

TEST(HeadsPage, HasAnOverviewAndASectionPerHead) {
  HeadDiagnosis head = head_with("a", HeadVerdict::linear_here, "linear here");
  head.prefixes = {{.n = 16, .lin_c = 0.9, .control = 0.8, .control_low = 0.7, .control_high = 1}};
  head.mixtures = {{.k = 2, .in_sample = {.lin = 0.01, .lin_c = 0.02}, .split_lin_c = 0.04}};
  head.best_k = 2;
  head.score_mixture = Vector::Constant(kHistogramBins, 0.1);
  const Page page =
      heads_page({head, head_with("b", HeadVerdict::not_linearisable, "not linearisable")});
  ASSERT_EQ(page.sections.size(), 3u);
  EXPECT_EQ(page.sections[0].id, "overview");
  const Sheet& table = page.sections[0].tables.front().sheet;
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0][5], Value(1.23));  // tau² with three digits
  EXPECT_EQ(table.rows[0][8], Value(std::string("not before 10^15")));
  EXPECT_EQ(page.sections[1].text, "Error 0.5.");
  EXPECT_EQ(page.sections[1].figures.size(), 2u);
  EXPECT_EQ(page.sections[2].figures.size(), 1u);  // no prefixes, no figure of them
  // Bins twice for the outline, once for each law.
  EXPECT_EQ(page.datasets.at("scores-head-0").rows.size(), 4u * kHistogramBins);
  EXPECT_EQ(page.datasets.at("scores-head-1").rows.size(), 3u * kHistogramBins);
  EXPECT_EQ(page.datasets.at("prefix-head-0").rows.size(), 2u);
  EXPECT_THAT(page.sections[1].figures[0].caption, HasSubstr("not be within the tolerance before"));
}

TEST(HeadsPage, ShowsTheForecastBesideItsTest) {
  HeadDiagnosis head = head_with("a", HeadVerdict::linear_here, "linear here");
  head.score_c = 0.9;
  head.gap_scale = 2.5;
  head.phase = Phase::intermediate;
  head.score_lengths = std::vector<ScoreLengthRow>{{.n = 300, .ess = 40}};
  head.longer_prompts = std::vector<ForecastRow>{{.n = 600, .ess = 70.04, .factor = 1.2}};
  head.forecast_test =
      std::vector<ForecastTest>{{.from = 150, .to = 300, .ess = 40, .ess_forecast = 44}};
  const Page page = heads_page({head});
  const Section& section = page.sections[1];
  EXPECT_EQ(page.datasets.at("longer-head-0").rows.size(), 4u);
  EXPECT_THAT(section.figures.back().caption,
              HasSubstr("From its first 150 keys the forecast for 300 is 44; measured are 40."));
  ASSERT_EQ(section.tables.size(), 4u);
  EXPECT_EQ(section.tables[2].sheet.rows[0][1], Value(70.0));
  EXPECT_EQ(section.tables[3].sheet.rows[0][1], Value(40.0));
  EXPECT_EQ(section.tables[3].sheet.rows[0][2], Value(44.0));
}

// The overview names the window that the verdict speaks of, and the lead says what windows gain.
TEST(HeadsPage, TheOverviewNamesTheBestWindow) {
  HeadDiagnosis head = head_with("a", HeadVerdict::too_short, "too short to say");
  head.window = std::vector<WindowRow>{
      {.w = 8, .tail = Tail::finite, .lin_c = 0.3, .state = 9, .best = false},
      {.w = 16,
       .tail = Tail::mean,
       .lin_c = 0.04,
       .state = head.n * (head.dk + head.dv) / 4,
       .best = true}};
  HeadDiagnosis other = head_with("b", HeadVerdict::too_short, "too short to say");
  const Page page = heads_page({head, other});
  const Record& row = page.sections[0].tables.front().sheet.rows[0];
  EXPECT_EQ(std::vector<Value>(row.begin() + 11, row.end()),
            (std::vector<Value>{Value(std::int64_t{16}), Value(std::string("mean")), Value(0.04),
                                Value(25.0)}));
  EXPECT_EQ(page.sections[0].tables.front().sheet.rows[1][11], Value());
  EXPECT_THAT(page.lead, HasSubstr("the typical head is 0.04 instead of 0.5, for 25 % of the"));
  EXPECT_THAT(heads_page({other}).lead, Not(HasSubstr("window")));
}

// Names that say layer and head make a map; others do not.
TEST(HeadsPage, HeadsOfLayersAreAMap) {
  std::vector<HeadDiagnosis> heads;
  for (const char* name : {"m.L0.H0", "m.L0.H1", "m.L1.H0", "m.L1.H1"}) {
    heads.push_back(head_with(name, HeadVerdict::too_short, "too short to say"));
  }
  heads[2].window =
      std::vector<WindowRow>{{.w = 8, .tail = Tail::finite, .lin_c = 0.3, .state = 9}};
  const Page page = heads_page(heads);
  const Sheet& map = page.datasets.at("map");
  ASSERT_EQ(map.rows.size(), 4u);
  EXPECT_EQ(map.rows[2][1], Value(std::string("1")));
  EXPECT_EQ(map.rows[2][2], Value(std::string("0")));
  EXPECT_EQ(map.rows[2][3], Value(0.3));  // the window
  EXPECT_EQ(map.rows[3][3], Value(0.5));  // the limit
  heads[1].name = "m.L0.H0";              // twice the same place
  EXPECT_EQ(heads_page(heads).datasets.count("map"), 0u);
  heads[1].name = "encoder";
  EXPECT_EQ(heads_page(heads).datasets.count("map"), 0u);
}

TEST(HeadsPage, BudgetsAndCausesHaveTheirTables) {
  HeadDiagnosis head = head_with("a", HeadVerdict::too_short, "too short to say");
  head.budget = std::vector<BudgetRow>{{.budget = 4,
                                        .method = Compression::window_mean,
                                        .numbers = 30,
                                        .multiply_adds = 40,
                                        .lin_c = 0.2,
                                        .best = true,
                                        .pareto = true},
                                       {.budget = 4, .method = Compression::uniform, .lin_c = 2}};
  head.budget_verdict = "best: 4: window_mean 0.2";
  head.causes = std::vector<CauseRow>{{.cause = Cause::drift,
                                       .value = 0.4,
                                       .low = 0.3,
                                       .high = 0.5,
                                       .found = true,
                                       .text = "drift"}};
  head.why = "drift";
  const Page page = heads_page({head});
  const Section& section = page.sections[1];
  ASSERT_EQ(section.tables.size(), 4u);
  EXPECT_EQ(section.tables[2].sheet.rows.front().front(), Value(std::string("drift")));
  EXPECT_EQ(section.tables[3].sheet.rows.size(), 2u);
  EXPECT_EQ(section.text, "Error 0.5.\n\nWhy: drift.");
  EXPECT_EQ(page.datasets.at("budget-head-0").rows.size(), 1u);  // only what is on the front
}

// The test of shape has its two rows where it was made, the power where it was needed.
TEST(HeadsPage, TheTestOfShapeIsShownWithItsPower) {
  const auto rows = [](const HeadDiagnosis& head) {
    std::string text;
    const Page page = heads_page({head});
    for (const PageTable& table : page.sections[1].tables) {
      for (const auto& row : table.sheet.rows) {
        for (const Value& value : row) {
          if (const auto* words = std::get_if<std::string>(&value)) text += *words + "|";
        }
      }
    }
    return text;
  };
  HeadDiagnosis head = head_with("a", HeadVerdict::linear_from, "linear from L = 9");
  EXPECT_THAT(rows(head), Not(HasSubstr("departure")));
  head.shape_departure = 0.05;
  head.shape_typical = 0.06;
  head.shape_limit = 0.09;
  EXPECT_THAT(rows(head), HasSubstr("0.05 (Gaussian keys: median 0.06, 95 % below 0.09)"));
  EXPECT_THAT(rows(head), Not(HasSubstr("power")));
  head.shape_harm = 0.17;
  head.shape_power = 0.95;
  EXPECT_THAT(rows(head), HasSubstr("0.95 against keys whose limit errs by 0.17"));
}

}  // namespace
}  // namespace esscher
