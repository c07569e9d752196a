// `esscher heads` and `esscher attend --head` as scripts see them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "esscher/io/npy.h"
#include "tests/cli/program.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;

const std::string kSample = testing::source_dir() + "/tests/data/sample-heads.safetensors";

TEST_F(Program, HeadsGivesOneRowPerHeadAndARunThatResumes) {
  const std::string command =
      "heads " + kSample + " --components 2,4 --queries 32 --json --out " + file("run").string();
  const Outcome got = run(command);
  ASSERT_EQ(got.code, 0) << got.err;
  const Json rows = got.json().at("rows");
  ASSERT_EQ(rows.size(), 4u);
  for (const Json& row : rows) {
    for (const char* key :
         {"head", "n", "d", "tau2", "ess", "lin", "lin_c", "control_lin_c", "verdict"}) {
      EXPECT_TRUE(row.contains(key)) << key;
    }
    ASSERT_EQ(row.at("mixtures").size(), 2u);
    for (const Json& mixture : row.at("mixtures")) {
      EXPECT_EQ(mixture.at("control_queries"), row.at("queries"));
      EXPECT_GT(mixture.at("control_lin_c").get<double>(), 0);
      EXPECT_TRUE(mixture.at("converged").get<bool>());
    }
  }
  EXPECT_TRUE(std::filesystem::exists(file("run") / "report.html"));
  EXPECT_EQ(run(command).out, got.out);
  EXPECT_EQ(run(command + " --tolerance 0.2").code, 2);  // another study in the same place
}

// One line per head in CSV; lists of rows stay lists in JSON. No column holds a document as text.
TEST_F(Program, ARunOfHeadsKeepsTypedRows) {
  const std::string directory = file("run").string();
  ASSERT_EQ(run("heads " + kSample + " --components 2 --queries 8 --quiet --out " + directory).code,
            0);
  const std::string csv = run("export " + directory + " --csv").out;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
  EXPECT_THAT(csv, ::testing::Not(HasSubstr("detail")));
  EXPECT_THAT(
      csv,
      HasSubstr(",linear_from,shape_departure,shape_typical,shape_limit,shape_harm,shape_power,"
                "verdict_kind,verdict,reason,"));
  const Json rows = run("export " + directory + " --json").json().at("rows");
  ASSERT_EQ(rows.size(), 4u);
  for (const Json& row : rows) {
    EXPECT_TRUE(row.at("linear_from").is_number_integer());
    EXPECT_GT(row.at("mixtures").at(0).at("split_lin_c").get<double>(), 0);
    EXPECT_EQ(row.at("score_histogram").size(), 50u);
  }
}

// People read what a longer prompt would do, and how the same forecast did on the head's own prompt.
TEST_F(Program, HeadsSaysWhatLongerPromptsDo) {
  const std::string command = "heads " + kSample + " --components 2 --queries 8 --window 0";
  const std::string text = run(command).out;
  const Json rows = run(command + " --json").json().at("rows");
  for (const Json& row : rows) {
    const Json& longer = row.at("longer_prompts");
    const Json& twice = longer.at("forecast").at(0);
    const Json& test = longer.at("test");
    EXPECT_THAT(text, HasSubstr(fmt::format(
                          "{}: longer prompts than {:.0f} keys: its scores deviate by {:.3g} "
                          "sqrt(log n) ({} phase); "
                          "ESS {:.1f} at {:.0f} keys, ",
                          row.at("head").get<std::string>(), twice.at("n").get<double>() / 2,
                          longer.at("c").get<double>(), longer.at("phase").get<std::string>(),
                          twice.at("ess").get<double>(), twice.at("n").get<double>())));
    EXPECT_THAT(text,
                HasSubstr(fmt::format(
                    "From its first {} keys that forecast gives {:.1f} at {}, where it is {:.1f}",
                    test.at("from").get<int>(), test.at("ess_forecast").get<double>(),
                    test.at("to").get<int>(), test.at("ess").get<double>())));
    EXPECT_THAT(text,
                HasSubstr(fmt::format(
                    "and {:.3g} for the weight of the heaviest of them, which is {:.3g}",
                    test.at("needle_forecast").get<double>(), test.at("needle").get<double>())));
    EXPECT_THAT(text, HasSubstr(fmt::format("; the heaviest key of today weighs {:.3g}, ",
                                            twice.at("needle").get<double>())));
  }
  // The causal heads look at near keys, so that the first half of a late query's prompt is unlike the rest.
  EXPECT_THAT(text,
              HasSubstr(" deviations higher, so that no draw of the first ones is like them"));
}

TEST_F(Program, HeavyKeysNeedAHeadWhoseEarlierQueriesWeighThem) {
  const std::string command = " --heavy 4 --queries 8 --components 2 --json";
  const Outcome got = run("heads " + kSample + command);
  ASSERT_EQ(got.code, 0) << got.err;
  const Json rows = got.json().at("rows");
  for (const Json& row : rows) {
    const Json& windows = row.at("window");
    const auto is_heavy = [](const Json& window) { return window.value("heavy", Json()) == 4; };
    EXPECT_EQ(std::any_of(windows.begin(), windows.end(), is_heavy), row.at("causal").get<bool>());
  }
  std::filesystem::create_directories(file("arrays"));
  for (const char* name : {"h.q.npy", "h.k.npy", "h.v.npy"}) {
    write_npy(file("arrays") / name, Matrix::Identity(3, 2));
  }
  const Outcome refused = run("heads " + file("arrays").string() + command);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--heavy is 4, but no head of"));
}

TEST_F(Program, APlanIsForHeadsWithoutRules) {
  const Outcome refused = run("heads " + kSample + " --causal --sliding 64 --plan 400000");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("--plan is 400000, but head moonshine.austen.L3.H6 has a mask"));
}

TEST_F(Program, ExportedSurrogatesReproduceTheReportedErrors) {
  const std::string surrogates = file("s.safetensors").string();
  const Outcome heads = run("heads " + kSample + " --components 4 --json --export " + surrogates);
  ASSERT_EQ(heads.code, 0) << heads.err;
  int compared = 0;
  const Json rows = heads.json().at("rows");
  for (const Json& row : rows) {
    if (row.at("causal").get<bool>()) continue;  // exported over the whole prompt
    ++compared;
    const std::string name = row.at("head");
    for (const int k : {1, 4}) {
      const Outcome attend =
          run("attend --json --head '" + kSample + "#" + name + "' --surrogate " + surrogates +
              " --components " + std::to_string(k));
      ASSERT_EQ(attend.code, 0) << attend.err;
      const Json& reported =
          k == 1 ? row.at("lin") : row.at("mixtures").at(0).at("in_sample").at("lin");
      EXPECT_TRUE(
          testing::close(attend.json().at("error").get<double>(), reported.get<double>(), 1e-8))
          << name << " " << k;
    }
  }
  EXPECT_EQ(compared, 2);
}

// A causal head is exported over its whole prompt, which is that of its last query.
TEST_F(Program, ExportedSurrogatesOfCausalHeadsReproduceTheLastQuery) {
  const std::string surrogates = file("s.safetensors").string();
  const Outcome heads =
      run("heads " + kSample + " --components 4 --at 255 --json --export " + surrogates);
  ASSERT_EQ(heads.code, 0) << heads.err;
  int causal = 0;
  const Json rows = heads.json().at("rows");
  for (const Json& row : rows) {
    if (!row.at("causal").get<bool>()) continue;
    ++causal;
    for (const int k : {1, 4}) {
      const Outcome attend =
          run("attend --json --head '" + kSample + "#" + row.at("head").get<std::string>() +
              "' --surrogate " + surrogates + " --components " + std::to_string(k));
      ASSERT_EQ(attend.code, 0) << attend.err;
      const Json last = attend.json().at("rows").back();
      ASSERT_EQ(last.at("query"), 255);
      const Json& reported =
          k == 1 ? row.at("lin") : row.at("mixtures").at(0).at("in_sample").at("lin");
      EXPECT_TRUE(testing::close(last.at("lin").get<double>(), reported.get<double>(), 1e-8)) << k;
    }
  }
  EXPECT_EQ(causal, 2);
}

TEST_F(Program, HeadsRefusesBadFilesByName) {
  write_text(file("junk.safetensors"), "not a model");
  const Outcome junk = run("heads " + file("junk.safetensors").string());
  EXPECT_EQ(junk.code, 2);
  EXPECT_THAT(junk.err, HasSubstr("junk.safetensors"));
  EXPECT_EQ(run("heads absent.npz").code, 2);
  EXPECT_EQ(run("heads " + kSample + " --components 1").code, 2);
}

// A model of one layer with weights 0: every word is as likely as any other, whatever is replaced.
TEST_F(Program, ModelReplacesHeadsByWindowsAndHeavyKeys) {
  const std::array<std::int32_t, 7> header = {4, 4, 1, 2, 1, 3, 40};
  const std::vector<float> numbers(3 * 4 + 2 * 4 + 2 * 16 + 2 * 8 + 3 * 16 + 4 + 40 * 2, 0.0F);
  std::string bytes(28 + 4 * numbers.size(), '\0');
  std::memcpy(bytes.data(), header.data(), 28);
  write_text(file("small.bin"), bytes);
  std::string words;
  for (int i = 0; i < 40; ++i) words += std::to_string(i % 3) + " ";
  write_text(file("tokens.txt"), words);
  const std::string command =
      "model " + file("small.bin").string() + " --tokens " + file("tokens.txt").string();
  EXPECT_THAT(run(command).out, HasSubstr("1.098612 nats per token from position 10"));
  const Outcome heavy = run(command + " --window 6 --heavy 2 --json");
  ASSERT_EQ(heavy.code, 0) << heavy.err;
  const Json row = heavy.json().at("rows").at(0);
  EXPECT_EQ(row.at("heads").at(1).at("heavy"), 2);
  EXPECT_LT(row.at("kl").get<double>(), 1e-12);
  for (const auto& [options, expected] :
       {std::pair{" --window 2 --sinks 3", "--window is 2, expected at least 1 and the number of"},
        std::pair{" --window 2 --heavy 1 --tail rotary", "--heavy is 1, expected 0 with a rotary"},
        std::pair{" --heavy 2", "--heavy is 2, expected --window beside it"}}) {
    const Outcome refused = run(command + options);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr(expected));
  }
}

}  // namespace
}  // namespace esscher
