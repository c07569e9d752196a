#include "esscher/model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "esscher/base/error.h"
#include "esscher/model/effect.h"
#include "esscher/model/forward.h"
#include "esscher/model/plan.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;

MatrixF random_weights(std::uint64_t id, Index rows, Index cols) {
  return (1.2 / std::sqrt(static_cast<double>(cols)) *
          testing::random_matrix(Stream(41, id), rows, cols))
      .cast<float>();
}

// Two layers of four heads, two of which share their keys.
std::shared_ptr<const Model> small_model() {
  auto model = std::make_shared<Model>();
  model->name = "small";
  model->spec = {.family = ModelFamily::llama,
                 .dim = 16,
                 .hidden = 24,
                 .layers = 2,
                 .heads = 4,
                 .kv_heads = 2,
                 .head_dim = 4,
                 .vocab = 31,
                 .context = 100,
                 .tied = true};
  model->embedding = random_weights(1, 31, 16) * 4;
  for (std::uint64_t l = 0; l < 2; ++l) {
    ModelLayer& layer = model->layers.emplace_back();
    layer.attention_norm.scale = layer.feed_norm.scale = VectorF::Ones(16);
    layer.q.W = 3 * random_weights(10 * l + 2, 16, 16);
    layer.k.W = random_weights(10 * l + 3, 8, 16);
    layer.v.W = random_weights(10 * l + 4, 8, 16);
    layer.o.W = random_weights(10 * l + 5, 16, 16);
    layer.gate.W = random_weights(10 * l + 6, 24, 16);
    layer.up.W = random_weights(10 * l + 7, 24, 16);
    layer.down.W = random_weights(10 * l + 8, 16, 24);
  }
  model->final_norm.scale = VectorF::Ones(16);
  return model;
}

Texts small_texts() {
  Texts texts(2);
  for (Index i = 0; i < 90; ++i) texts[0].push_back(i * i % 31);
  for (Index i = 0; i < 60; ++i) texts[1].push_back((3 * i + i * i * i) % 31);
  return texts;
}

// The kernel under a causal mask against the definition, query by query.
TEST(Model, TheSoftmaxHeadIsCausalAttention) {
  const HeadInput in{.Q = testing::random_matrix(Stream(1, 8), 131, 6),
                     .K = testing::random_matrix(Stream(2, 8), 131, 6),
                     .V = testing::random_matrix(Stream(3, 8), 131, 6),
                     .scale = 0.4};
  const Matrix got = softmax_head(in);
  for (Index i = 0; i < in.Q.rows(); ++i) {
    const Vector s = in.scale * (in.K.topRows(i + 1) * in.Q.row(i).transpose());
    const Vector w = (s.array() - s.maxCoeff()).exp();
    const Vector want = in.V.topRows(i + 1).transpose() * w / w.sum();
    ASSERT_TRUE(testing::close(got.row(i).transpose(), want, 1e-13, 1.0)) << i;
  }
}

// Products of floats are exact in double precision, so that the sum of a plain loop is reached to the
// last bit on every instruction set, and rounded to a float once.
TEST(Gemm, FloatProductsAreSumsInDoublePrecision) {
  for (const Index n : {1, 5, 9, 40}) {
    const MatrixF x = random_weights(60, n, 301);
    const MatrixF w = random_weights(61, 101, 301);
    const MatrixF y = times_transposed(x, w);
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < w.rows(); ++j) {
        double sum = 0;
        for (Index p = 0; p < x.cols(); ++p) sum += static_cast<double>(x(i, p)) * w(j, p);
        ASSERT_EQ(y(i, j), static_cast<float>(sum)) << n << " " << i << " " << j;
      }
    }
  }
}

TEST(Model, AWindowOfTheWholeTextChangesNothing) {
  const auto model = small_model();
  const EffectStudy study(model, small_texts(), 8);
  HeadPlan plan;
  plan.fallback = WindowOptions{.window = 100};
  const EffectRow row = study.measure("plan", plan);
  EXPECT_LT(row.kl, 1e-10);
  EXPECT_EQ(row.top1, 1.0);
  EXPECT_LT(row.error, 1e-12);
  EXPECT_EQ(row.state, row.cache);
  EXPECT_EQ(row.tokens, 90 + 60 - 2 - 2 * 8);
}

// More is kept, less is noticed; the interval holds the mean; the numbers kept are counted.
TEST(Model, ReplacedHeadsAreNoticed) {
  const auto model = small_model();
  const EffectStudy study(model, small_texts(), 8);
  HeadPlan plan;
  double before = 1e9;
  for (const Index w : {2, 16, 64}) {
    plan.fallback = WindowOptions{.window = w, .tail = Tail::none};
    const EffectRow row = study.measure("plan", plan);
    EXPECT_GT(row.kl, 0) << w;
    EXPECT_LT(row.kl, before) << w;
    EXPECT_LE(row.kl_low, row.kl) << w;
    EXPECT_GE(row.kl_high, row.kl) << w;
    EXPECT_EQ(row.state, 2 * 2 * w * 8) << w;
    EXPECT_EQ(row.cache, 2 * 2 * 90 * 8);
    EXPECT_GT(row.layers[1].wo_error, 0);
    EXPECT_EQ(row.layers[1].replaced, 4);
    before = row.kl;
  }
}

// Nats, KL and top-1 over all judged positions, from probabilities that are summed word by word.
TEST(Model, WhatIsNoticedIsItsDefinition) {
  const auto model = small_model();
  const Texts texts = small_texts();
  const Index from = 8;
  HeadPlan plan;
  plan.fallback = WindowOptions{.window = 4, .tail = Tail::mean};
  double nats = 0, replaced = 0, kl = 0, same = 0, count = 0;
  for (const auto& text : texts) {
    const Pass passes[] = {run_model(*model, text, softmax_head),
                           run_model(*model, text, planned_heads(plan, model->spec))};
    for (Index i = from; i + 1 < static_cast<Index>(text.size()); ++i) {
      Vector p[2];
      for (int k = 0; k < 2; ++k) {
        p[k] =
            (model->embedding.cast<double>() * passes[k].states.row(i).cast<double>().transpose())
                .array()
                .exp();
        p[k] /= p[k].sum();
      }
      const Index next = text[static_cast<std::size_t>(i) + 1];
      nats -= std::log(p[0](next));
      replaced -= std::log(p[1](next));
      for (Index w = 0; w < p[0].size(); ++w) kl += p[0](w) * std::log(p[0](w) / p[1](w));
      Index best[2];
      for (int k = 0; k < 2; ++k) p[k].maxCoeff(&best[k]);
      same += best[0] == best[1] ? 1 : 0;
      count += 1;
    }
  }
  const EffectRow row = EffectStudy(model, texts, from).measure("plan", plan);
  EXPECT_EQ(static_cast<double>(row.tokens), count);
  EXPECT_NEAR(row.nats, nats / count, 1e-5);
  EXPECT_NEAR(row.nats_replaced, replaced / count, 1e-5);
  EXPECT_NEAR(row.kl, kl / count, 1e-5);
  EXPECT_GT(row.kl, 1e-2);
  EXPECT_DOUBLE_EQ(row.top1, same / count);
}

// One head alone: the row of a selection is the row of a plan that names it.
TEST(Model, SelectionReplacesOneHeadAtATime) {
  const auto model = small_model();
  const auto study = std::make_shared<const EffectStudy>(model, small_texts(), 8);
  const HeadPlan plan = parse_plan(
      "plan.json",
      R"({"default": null, "heads": [{"layer": 1, "head": 2, "window": 4, "tail": "gaussian"},
                                     {"layer": 0, "head": 1, "window": 6}]})");
  const Cells<EffectRow> cells = effect_cells(study, *model, plan, true);
  EXPECT_EQ(cells.keys, (std::vector<std::string>{"plan", "L0.H1", "L1.H2"}));
  HeadPlan one;
  one.heads[{1, 2}] = WindowOptions{.window = 4, .tail = Tail::gaussian};
  EXPECT_EQ(cells.compute(2).front().kl, study->measure("x", one).kl);
  EXPECT_EQ(cells.compute(2).front().layers[0].replaced, 0);
  const EffectRow whole = cells.compute(0).front();
  EXPECT_GT(whole.kl, 0.5 * cells.compute(2).front().kl);

  // The plan head by head; heads that it does not name stay exact.
  EXPECT_FALSE(cells.compute(2).front().heads);
  ASSERT_EQ(whole.heads->size(), 8u);
  EXPECT_EQ(verdict_of(whole.heads->at(0)), "exact");
  EXPECT_EQ(whole.heads->at(0).error, 0);
  EXPECT_EQ(whole.heads->at(1).head, "L0.H1");
  EXPECT_EQ(whole.heads->at(1).window, 6);
  EXPECT_EQ(whole.heads->at(1).error, whole.layers[0].error);  // the only one of its layer
  EXPECT_EQ(whole.heads->at(6).tail, Tail::gaussian);
  EXPECT_EQ(whole.heads->at(6).error, whole.layers[1].error);
  EXPECT_GT(whole.layers[1].error, 0);
}

TEST(Model, TheVerdictOfAHeadIsAboutItsError) {
  HeadEffectRow row{.head = "L0.H0", .window = 16, .sinks = 1, .heavy = 0, .tail = Tail::finite};
  row.error = kEnough;
  EXPECT_EQ(verdict_of(row), "linear beyond 16 keys (tail: finite)");
  row.error = 1.01 * kEnough;
  EXPECT_EQ(verdict_of(row), "not linear beyond 16 keys (tail: finite)");
  row.heavy = 4;
  row.tail = Tail::none;
  EXPECT_EQ(verdict_of(row), "16 keys and 4 heavy ones are not enough");
}

std::string message(const std::string& text) {
  try {
    parse_plan("plan.json", text);
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

TEST(Plan, RoundTripsAndRefusesByName) {
  HeadPlan plan;
  plan.fallback = WindowOptions{.window = 8, .sinks = 2, .heavy = 1, .tail = Tail::mean};
  plan.heads[{0, 1}] = std::nullopt;
  const HeadPlan again = parse_plan("again", plan_text(plan));
  EXPECT_EQ(plan_text(again), plan_text(plan));
  EXPECT_FALSE(again.at(0, 1));
  EXPECT_EQ(again.at(1, 1)->heavy, 1);
  EXPECT_THAT(message(R"({"heds": []})"), HasSubstr("unknown key \"heds\""));
  EXPECT_THAT(message(R"({"default": {"window": 4, "tail": "gausian"}})"), HasSubstr("gaussian"));
  EXPECT_THAT(message(R"({"heads": [{"head": 1, "window": 4}]})"), HasSubstr("heads[0].layer"));
  EXPECT_THAT(message(R"({"default": {"window": 1, "sinks": 2}})"), HasSubstr("default.window"));
  EXPECT_THAT(
      message(R"({"heads": [{"layer":0,"head":0,"window":4},{"layer":0,"head":0,"window":4}]})"),
      HasSubstr("named twice"));
  HeadPlan absent;
  absent.heads[{9, 0}] = WindowOptions{};
  EXPECT_THROW(check_plan(absent, small_model()->spec), ArgumentError);
}

std::string spec_message(const std::string& text) {
  try {
    parse_model_spec("config.json", text);
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

TEST(Spec, WhatIsNotServedIsRefusedByName) {
  const std::string good =
      R"("model_type":"llama","hidden_size":8,"intermediate_size":16,"num_hidden_layers":1,)"
      R"("num_attention_heads":2,"vocab_size":11,"max_position_embeddings":16)";
  EXPECT_EQ(parse_model_spec("config.json", "{" + good + "}").head_dim, 4);
  EXPECT_THAT(spec_message("{" + good + R"(,"rope_scaling":{"factor":2}})"),
              HasSubstr("rope_scaling"));
  EXPECT_THAT(spec_message("{" + good + R"(,"hidden_act":"gelu"})"), HasSubstr("silu"));
  EXPECT_THAT(spec_message("{" + good + R"(,"num_key_value_heads":3})"), HasSubstr("divisor"));
  EXPECT_THAT(spec_message(R"({"model_type":"bert"})"), HasSubstr("\"llama\" or \"gpt2\""));
  EXPECT_THAT(spec_message(R"({"model_type":"gpt2","n_embd":"8"})"), HasSubstr("n_embd"));
}

TEST(Llama2c, SizesMustFit) {
  const std::array<std::int32_t, 7> header = {4, 4, 1, 2, 1, 3, 2};
  std::vector<float> numbers(3 * 4 + 2 * 4 + 2 * 16 + 2 * 8 + 3 * 16 + 4 + 4, 0.5F);
  const auto bytes = [&] {
    std::vector<std::byte> out(28 + 4 * numbers.size());
    std::memcpy(out.data(), header.data(), 28);
    std::memcpy(out.data() + 28, numbers.data(), 4 * numbers.size());
    return out;
  };
  EXPECT_EQ(parse_llama2c("x.bin", bytes()).layers.size(), 1U);
  numbers.push_back(1);
  EXPECT_THROW(parse_llama2c("x.bin", bytes()), FileError);
  numbers.resize(numbers.size() - 1);
  numbers[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(parse_llama2c("x.bin", bytes()), FileError);
  EXPECT_THROW(parse_llama2c("x.bin", Bytes()), FileError);
}

TEST(Tokens, OneTextPerLine) {
  EXPECT_EQ(parse_tokens("t", "1 2,3\n\n 4\t5\r\n"), (Texts{{1, 2, 3}, {4, 5}}));
  EXPECT_THROW(parse_tokens("t", "1 two"), FileError);
  EXPECT_THROW(parse_tokens("t", "\n"), FileError);
  EXPECT_THROW(run_model(*small_model(), std::vector<Index>{31}, softmax_head), ArgumentError);
}

}  // namespace
}  // namespace esscher
