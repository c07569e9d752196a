// What captions say of the numbers of their figure: each sentence changes with the rows.
#include "esscher/report/reading.h"

#include <gtest/gtest.h>

namespace esscher {
namespace {

const Axis kLength{.column = "L", .title = "prompt length L", .log = true};
const Axis kValue{.column = "value", .title = "D(L)", .log = true};

CurveChart curves(std::string series = "") {
  return {.data = "rows", .x = kLength, .y = kValue, .series = std::move(series)};
}

TEST(Reading, OneCurveGoesFromAToB) {
  Sheet rows{.columns = {"L", "value"}, .rows = {}};
  rows.add(1000, 0.004);
  rows.add(10, 0.35);
  rows.add(100000, 0.0);  // a log axis does not show it
  EXPECT_EQ(reading(curves(), {{"rows", rows}}),
            "The curve goes from 0.35 at prompt length L = 10 to 0.004 at 1000.");
}

TEST(Reading, SeveralCurvesLieBetweenTheLowestAndTheHighest) {
  Sheet rows{.columns = {"L", "value", "law"}, .rows = {}};
  rows.add(10, 0.9, "a");
  rows.add(100, 0.25, "a");
  rows.add(100, 0.5, "b");
  EXPECT_EQ(reading(curves("law"), {{"rows", rows}}),
            "At prompt length L = 100 the curves are at 0.25 (a) and 0.5 (b).");
  rows.add(100, 0.75, "c");
  EXPECT_EQ(reading(curves("law"), {{"rows", rows}}),
            "At prompt length L = 100 the curves lie between 0.25 (a) and 0.75 (c).");
  rows.add(1000, 0.0625, "c");
  EXPECT_EQ(reading(curves("law"), {{"rows", rows}}),
            "At their ends the curves lie between 0.0625 (c) and 0.5 (b).");
}

TEST(Reading, CurvesThatMeetAreSaidOnce) {
  Sheet rows{.columns = {"L", "value", "law"}, .rows = {}};
  for (const char* law : {"a", "b", "c"}) rows.add(10, 0.5, law);
  EXPECT_EQ(reading(curves("law"), {{"rows", rows}}),
            "At prompt length L = 10 the curves are all at 0.5.");
}

TEST(Reading, PanelsAndDashesHaveTheirNames) {
  Sheet rows{.columns = {"L", "value", "law", "model", "part"}, .rows = {}};
  rows.add(Length(10), 0.5, "a", "softmax", "U");
  rows.add(Length(10), 0.25, "a", "linear", "V");
  CurveChart chart = curves("law");
  chart.dash = "model";
  chart.facet = "part";
  EXPECT_EQ(
      reading(chart, {{"rows", rows}}),
      "At prompt length L = 10 the curves are at 0.25 (V, a, linear) and 0.5 (U, a, softmax).");
}

TEST(Reading, PointsAndMapsHaveTheirExtremes) {
  Sheet points{.columns = {"L", "value"}, .rows = {}};
  points.add(1, 0.5);
  points.add(2, 0.125);
  points.add(3, NAN);
  const ScatterChart scatter{.data = "rows", .x = kLength, .y = kValue};
  EXPECT_EQ(reading(scatter, {{"rows", points}}), "The 2 points lie between 0.125 and 0.5.");
  Sheet map{.columns = {"trained", "tested", "ratio"}, .rows = {}};
  map.add("10", "100", 4.0);
  map.add("10", "1000", 9.125);
  const HeatmapChart chart{.data = "rows",
                           .x = "trained",
                           .x_title = "trained at L",
                           .y = "tested",
                           .value = {.column = "ratio"}};
  EXPECT_EQ(reading(chart, {{"rows", map}}),
            "The largest value is 9.12: trained at L = 10, tested = 1000.");
}

TEST(Reading, NothingIsSaidOfNothing) {
  const Sheet empty{.columns = {"L", "value"}, .rows = {}};
  EXPECT_EQ(reading(curves(), {{"rows", empty}}), "");
  EXPECT_EQ(reading(curves(), {}), "");
  EXPECT_EQ(reading(HistogramChart{.data = "rows", .x = kValue}, {{"rows", empty}}), "");
}

TEST(Reading, OnlyFiguresThatAskAreRead) {
  Page page;
  page.datasets["rows"] = Sheet{.columns = {"L", "value"}, .rows = {}};
  page.datasets["rows"].add(10, 0.5);
  page.sections = {{.id = "s",
                    .title = "S",
                    .figures = {{.id = "a", .chart = curves(), .caption = "D(L).", .read = true},
                                {.id = "b", .chart = curves(), .caption = "D(L)."}}}};
  add_readings(page);
  EXPECT_EQ(page.sections[0].figures[0].caption, "D(L). The value is 0.5 at prompt length L = 10.");
  EXPECT_EQ(page.sections[0].figures[1].caption, "D(L).");
}

}  // namespace
}  // namespace esscher
