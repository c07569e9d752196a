// Captions are computed from the numbers of their page, or say nothing about them: each of these
// changes when its numbers do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/heads/options.h"
#include "esscher/report/detail/head_map.h"
#include "esscher/report/page_concentration.h"
#include "esscher/report/page_flow.h"
#include "esscher/report/page_heads.h"
#include "esscher/report/page_model.h"
#include "esscher/report/page_optimum.h"
#include "esscher/report/page_scaling.h"
#include "esscher/report/page_temperature.h"
#include "esscher/report/page_tokens.h"
#include "esscher/report/page_training.h"
#include "esscher/report/page_twins.h"
#include "esscher/scaling/boundary.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Figure& figure(const Page& page, const std::string& id) {
  for (const Section& section : page.sections) {
    for (const Figure& figure : section.figures) {
      if (figure.id == id) return figure;
    }
  }
  throw ArgumentError("no figure " + id);
}

std::string caption(const Page& page, const std::string& id) { return figure(page, id).caption; }

// No page says that a number is not a number.
void expect_no_nan(const Page& page) {
  EXPECT_THAT(page.lead, Not(HasSubstr("nan")));
  for (const Section& section : page.sections) {
    EXPECT_THAT(section.text, Not(HasSubstr("nan")));
    for (const Figure& figure : section.figures) {
      EXPECT_THAT(figure.caption, Not(HasSubstr("nan")));
    }
  }
}

// ---- concentration

TEST(Captions, TheBendIsWhereExponentsSayItIs) {
  const auto point = [](double sigma, double gamma) {
    return SigmaPoint{.sigma = sigma, .gamma = gamma};
  };
  EXPECT_THAT(sigma_advice({point(1, 1), point(1.4, 1), point(2, 0.6)}),
              HasSubstr("like 1/L up to σ² = 1.96, and more slowly from σ² = 4 on."));
  EXPECT_THAT(sigma_advice({point(1, 1), point(1.4, 1)}), HasSubstr("1/L in the limit at every"));
  EXPECT_THAT(sigma_advice({point(2, 0.6)}), HasSubstr("more slowly than 1/L at every"));
}

// ---- flow and training

FlowRecord flow_from(double first, double last, std::optional<double> bayes) {
  FlowRecord flow;
  for (int i = 0; i <= 4; ++i) {
    FlowRow& row = flow.path.emplace_back();
    row.t = i;
    row.risk = first + (last - first) * i / 4;
    row.U = Matrix::Zero(2, 2);
    row.r = Vector::Zero(2);
  }
  flow.summary = flow.path.back();
  flow.summary.what = FlowRowKind::summary;
  flow.summary.status = FlowStatus::stationary;
  flow.summary.L = Length(10);
  flow.summary.model = "softmax";
  flow.summary.features = Features::gaussian;
  flow.summary.parametrisation = ParameterSpace::UV;
  flow.summary.engine = Engine::quadrature;
  flow.summary.bayes = bayes;
  return flow;
}

TEST(Captions, AFlowFallsOrStays) {
  const Page falls = flow_page(flow_from(0.5, 0.125, 0.0625), "");
  EXPECT_THAT(caption(falls, "risk"), HasSubstr("falls from 0.5 to 0.125."));
  EXPECT_THAT(caption(falls, "risk"), HasSubstr("Bayes risk at this length, 0.0625."));
  EXPECT_THAT(falls.lead, HasSubstr("falls from 0.5 to 0.125; the flow is stationary"));
  const Page stays = flow_page(flow_from(0.5, 0.5, 0.0), "");
  EXPECT_THAT(caption(stays, "risk"), HasSubstr("stays at 0.5."));
  EXPECT_THAT(caption(stays, "risk"), HasSubstr("The Bayes risk is 0"));
  EXPECT_THAT(stays.lead, HasSubstr("The risk stays at 0.5;"));
  EXPECT_THAT(caption(flow_page(flow_from(1, 0.5, {}), ""), "risk"), HasSubstr("is not known"));
}

TEST(Captions, ALossIsSaidWithItsLines) {
  TrainResult result;
  result.steps = 200;
  for (const double loss : {0.75, 0.25}) {
    TrainRow& row = result.losses.emplace_back();
    row.step = 100 * static_cast<std::int64_t>(result.losses.size());
    row.loss = loss;
  }
  const auto risk = [](const std::string& model, double value) {
    RiskRow row;
    row.L = Length(10);
    row.model = model;
    row.risk = value;
    return row;
  };
  result.final_risk = risk("softmax", 0.25);
  const std::vector<RiskRow> risks{result.final_risk, risk("bayes", 0.125)};
  const std::string text = caption(training_page(result, risks, ""), "loss");
  EXPECT_THAT(text, HasSubstr("on fresh prompts, from 0.75 to 0.25. The line “"));
  EXPECT_THAT(text, HasSubstr("” is at 0.125."));
}

TEST(Captions, EntriesOfHeadsAreSaidAsTheyAreAtTheEnd) {
  Page page;
  const auto at = [](double time, double u, double r) {
    const Matrix U{{u, 0.0}, {0.0, -u}};
    return timed_heads(time, std::vector<Readout>{{U, Vector::Constant(2, r)}});
  };
  EXPECT_EQ(head_map(page, "heads", {at(0, 9, 9), at(1, 0.5, 0.25)}, "t").caption,
            "At the end the entries of U lie between -0.5 and 0.5, those of the row of V that the "
            "prediction reads between 0.25 and 0.25. The slider shows earlier times.");
  EXPECT_EQ(head_map(page, "none", {}, "t").caption, "No entry is there.");
}

// ---- twins

TwinRow twin(Length L, const std::string& model, double risk) {
  TwinRow row;
  row.what = TwinRowKind::summary;
  row.model = model;
  row.L = L;
  row.status = "stationary";
  row.limiting_risk = risk;
  return row;
}

TEST(Captions, TwinsSayLimitsDistancesAndGaps) {
  CompareResult result;
  result.twins = {twin(Length::infinity(), "infinity", 0.0625), twin(10, "softmax", 0.5),
                  twin(100, "softmax", 0.25)};
  result.twins[1].sup_distance = 0.75;
  result.twins[2].sup_distance = 0.375;
  result.twins[1].sup_gradient_gap = 0.2;
  result.twins[2].sup_gradient_gap = 0.1;
  const Page page = twins_page(result, "");
  EXPECT_THAT(caption(page, "final"),
              HasSubstr("smallest at a finite length is 0.25. At L = ∞ it is 0.0625."));
  EXPECT_THAT(caption(page, "twin-risk"), HasSubstr("that of the infinite prompt at 0.0625."));
  EXPECT_THAT(caption(page, "twin-distance"), HasSubstr("between 0.375 and 0.75."));
  EXPECT_THAT(caption(page, "sup-gap"), HasSubstr("between 0.1 and 0.2."));
  result.twins.pop_back();
  EXPECT_THAT(caption(twins_page(result, ""), "sup-gap"), HasSubstr("value is 0.2."));
}

TEST(Captions, TwinsWithoutNumbersAreNotSaidToHaveAny) {
  CompareResult result;
  result.twins = {twin(Length::infinity(), "infinity", 0.0625)};
  expect_no_nan(twins_page(result, ""));
  result.twins = {twin(10, "softmax", 0.5)};
  const Page page = twins_page(result, "");
  EXPECT_THAT(caption(page, "final"), Not(HasSubstr("∞")));
  EXPECT_EQ(caption(page, "twin-distance"),
            "Distance of the parameters from those at L = ∞ at the same time.");
}

// ---- optimum and temperature

TEST(Captions, TheBestLayerIsComparedWithTheBestPrediction) {
  const auto row = [](Length L, double risk, double u) {
    OptimumRow out;
    out.L = L;
    out.risk = risk;
    out.u = u;
    out.bayes = 0.5;
    out.affine = 1;
    out.limit_risk = risk + 0.25;
    return out;
  };
  const Page page =
      optimum_page({row(10, 0.75, 2.5), row(100, 0.625, 1.5), row(Length::infinity(), 0.5, 1.25)});
  EXPECT_THAT(caption(page, "risks"),
              HasSubstr("is 50 % above the best prediction at L = 10 and 25 % at L = 100."));
  EXPECT_THAT(caption(page, "scores"), HasSubstr("u is 2.5 at L = 10 and 1.5 at L = 100; the best "
                                                 "layer of an infinite prompt has 1.25."));
  const Page one = optimum_page({row(10, 0.75, 2.5)});
  EXPECT_THAT(caption(one, "risks"), Not(HasSubstr(" and ")));
  EXPECT_THAT(caption(one, "scores"), Not(HasSubstr("infinite prompt")));
}

TemperatureRow best_at(Length L, double factor, std::optional<double> limit) {
  TemperatureRow row{.what = TemperatureRowKind::best, .shift = "none", .L = L};
  row.factor = factor;
  row.factor_std_error = 0.01;
  row.temperature = 1 / factor;
  row.risk = 0.25;
  row.std_error = 0.0;
  row.risk_before = 0.5;
  row.gain = 0.25;
  row.gain_std_error = 0.01;
  row.limit_factor = limit;
  return row;
}

TEST(Captions, TheBestFactorHasALimitOnlyWhereThereIsOne) {
  const Page with = temperature_page({best_at(10, 2, 1.5), best_at(100, 1.75, 1.5)});
  EXPECT_EQ(caption(with, "best"),
            "The factor with the smallest risk against prompt length. Dashed: the best factor of "
            "an infinite prompt. On the task of training it is 2 at L = 10 and 1.75 at L = 100, "
            "and 1.5 at L = inf.");
  const Page without = temperature_page({best_at(10, 2, {})});
  EXPECT_THAT(caption(without, "best"), Not(HasSubstr("Dashed")));
  EXPECT_THAT(caption(without, "best"), HasSubstr("it is 2 at L = 10."));
  EXPECT_EQ(std::get<CurveChart>(figure(without, "best").chart).reference_data, "");
}

// ---- scaling

TEST(Captions, SchedulesAreSaidAtTheirLongestPrompt) {
  const auto row = [](double L, const std::string& schedule, double H, double crossover) {
    return ScalingRow{.L = L, .schedule = schedule, .H = H, .crossover_H = crossover};
  };
  const Page page = scaling_page(
      ScoreModel::gaussian(1),
      {row(100, "none", 0.5, 0.5), row(1e4, "none", 0.125, 0.15), row(1e4, "log", 0.0625, 0.0625)},
      {{.schedule = "none", .change = ScalingChange::freezes, .L = 200}}, 3);
  EXPECT_THAT(caption(page, "participation"),
              HasSubstr("At L = 1e+04 it is 0.125 (none), 0.0625 (log). Dashed: the one formula "
                        "for all phases, here within 20 %."));
  EXPECT_THAT(page.lead,
              HasSubstr("Under the schedule “none” the weights freeze on few tokens at L = 200."));
  const double decade = std::log(10.0);
  EXPECT_THAT(caption(page, "weight_map"),
              HasSubstr("At L = 1e2 it is " + brief(freezing_deviation(2 * decade), 3) +
                        " instead of 3.03, at L = 1e15 " +
                        brief(freezing_deviation(15 * decade), 3) + " instead of 8.31."));
  EXPECT_THAT(caption(page, "needle_map"),
              HasSubstr("At c = 0.5 it is " + brief(retrieval_gap(0.5, 2 * decade), 3) +
                        " at L = 1e2 and " + brief(retrieval_gap(0.5, 15 * decade), 3) +
                        " at L = 1e15, where the limit is 2.25."));
  EXPECT_THAT(caption(page, "retrieval"), HasSubstr("where the limit is 1.41."));
}

TEST(Captions, TokensSayHowFarTheLongestPromptIs) {
  const Page page = sphere_page(
      {{.L = 100, .H = 0.5, .predicted_H = 0.25}, {.L = 1000, .H = 0.375, .predicted_H = 0.25}});
  EXPECT_EQ(page.lead, "At L = 1000 no number is further than 0.12 from its limit.");
}

// ---- heads and models

TEST(Captions, TheFarthestHeadIsAboveTheDiagonalOrNoHeadIs) {
  const auto head = [](const std::string& name, double error, double control) {
    HeadDiagnosis out;
    out.name = name;
    out.n = 300;
    out.dk = out.dv = 4;
    out.gaussian = {.lin = error, .lin_c = error};
    out.control_lin_c = control;
    out.score_histogram = Vector::Constant(kHistogramBins, 0.1);
    return out;
  };
  EXPECT_THAT(caption(heads_page({head("a", 0.5, 0.25), head("b", 0.75, 0.25)}), "error-control"),
              HasSubstr("is b (0.75 against 0.25)."));
  EXPECT_THAT(caption(heads_page({head("a", 0.25, 0.5)}), "error-control"),
              HasSubstr("No head is above the diagonal."));
}

TEST(Captions, ModelsNameTheCheapestAndTheDearestHead) {
  const auto effect = [](const std::string& plan, double kl) {
    return EffectRow{.plan = plan, .kl = kl, .error = 0.1, .wo_error = 0.2};
  };
  EffectRow plan = effect("plan", 0.5);
  plan.heads = std::vector<HeadEffectRow>{
      {.head = "L0.H0", .window = 8, .sinks = 0, .heavy = 0, .tail = Tail::finite, .error = 0.01},
      {.head = "L0.H1", .error = 0}};
  const Page page = model_page({plan, effect("L0.H0", 0.25), effect("L0.H1", 0.125)});
  EXPECT_THAT(caption(page, "select"), HasSubstr("L0.H1 least of all (KL 0.125)."));
  EXPECT_THAT(caption(page, "map-kl"), HasSubstr("misses L0.H0 most (KL 0.25)."));
  const auto text = std::ranges::find(page.sections, "plan", &Section::id)->text;
  EXPECT_THAT(text, HasSubstr("1 of 2 heads are replaced; 1 of them"));
  // A column "error" would be taken for the standard error of the column before it.
  for (const PageTable& table : page.sections.front().tables) {
    EXPECT_THAT(table.sheet.columns, Not(::testing::Contains("error"))) << table.title;
  }
  EXPECT_TRUE(std::get<ScatterChart>(figure(page, "select").chart).y.log);
  const Page none = model_page({plan, effect("L0.H0", 0.25), effect("L0.H1", 0)});
  EXPECT_FALSE(std::get<ScatterChart>(figure(none, "select").chart).y.log);
}

}  // namespace
}  // namespace esscher
