#include "esscher/config/prompt.h"

#include "esscher/base/error.h"
#include "tests/testing.h"

namespace esscher {
namespace {

std::optional<Prompt> read(const std::string& text) {
  return read_prompt(Config::parse(text, "x.toml").root());
}

const std::string kMeasure = "[measure]\ntype = \"gaussian\"\ndim = 2\n";

TEST(ReadPrompt, EveryKey) {
  EXPECT_FALSE(read(kMeasure).has_value());
  const Prompt prompt = *read(kMeasure +
                              "[prompt]\ngiven = [[1, 2]]\ninclude_query = true\n"
                              "sink_logits = [0.5]\nbias = { kind = \"alibi\", slope = 0.25 }\n"
                              "[[prompt.groups]]\nmeasure = { type = \"sphere\", dim = 2 }\n"
                              "share = 0.25\nbias = 1.5\nname = \"ring\"\n"
                              "[[prompt.groups]]\nmeasure = { type = \"uniform\", dim = 2 }\n"
                              "count = 3\n");
  EXPECT_EQ(prompt.given, (Matrix{{1.0, 2.0}}));
  EXPECT_EQ(part_names(prompt),
            (std::vector<std::string>{"given:0", "ring", "uniform", "gaussian", "self", "sink:0"}));
  EXPECT_EQ(prompt.groups[0].bias, 1.5);
  EXPECT_EQ(prompt.groups[1].count, 3);
  EXPECT_EQ(prompt.groups[2].share, 0.75);
  EXPECT_EQ(prompt.bias.slope, 0.25);
}

// The end of a sweep of a share.
TEST(ReadPrompt, ShareOfOneLeavesNothingForTheMeasure) {
  const Prompt prompt =
      *read(kMeasure + "[[prompt.groups]]\nmeasure = { type = \"uniform\", dim = 2 }\nshare = 1\n");
  ASSERT_EQ(prompt.groups.size(), 2U);
  EXPECT_EQ(prompt.groups[1].share, 0);
  EXPECT_EQ(limit_measure(prompt)->name(), "uniform");
}

TEST(ReadPrompt, ErrorsNameTheKey) {
  const auto message = [](const std::string& text) {
    return testing::message_of<ConfigError>([&] { return read(text); });
  };
  const std::string group = "[[prompt.groups]]\nmeasure = { type = \"uniform\", dim = 2 }\n";
  EXPECT_NE(message(kMeasure + group).find("expected count or share"), std::string::npos);
  EXPECT_NE(message(kMeasure + group + "share = 0.7\n" + group + "share = 0.6\n")
                .find("shares sum to 1.3, at most 1"),
            std::string::npos);
  EXPECT_NE(message(group + "share = 0.5\n").find("shares sum to 0.5"), std::string::npos);
  EXPECT_NE(message(kMeasure + "[prompt]\ngiven = [[1, 2, 3]]\n").find("has dimension 3"),
            std::string::npos);
  EXPECT_NE(message(kMeasure + "[prompt]\nbias = { kind = \"alibi\", slope = -1 }\n")
                .find("prompt.bias.slope is -1"),
            std::string::npos);
}

}  // namespace
}  // namespace esscher
