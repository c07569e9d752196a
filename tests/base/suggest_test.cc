#include "esscher/base/suggest.h"

#include <gtest/gtest.h>

#include "esscher/base/error.h"

namespace esscher {
namespace {

const std::vector<std::string> kKeys{"cov", "dim", "learning_rate", "mean", "type"};

TEST(Suggest, SlipsOfOneLetterSwapsAndLongerFormsAreFound) {
  EXPECT_EQ(nearest_word("dimm", kKeys), "dim");
  EXPECT_EQ(nearest_word("dm", kKeys), "dim");
  EXPECT_EQ(nearest_word("maen", kKeys), "mean");  // neighbours swapped
  EXPECT_EQ(nearest_word("ytpe", kKeys), "type");
  EXPECT_EQ(nearest_word("learnin_rat", kKeys), "learning_rate");
  EXPECT_EQ(nearest_word("dimension", kKeys), "dim");
}

// Swapped neighbours are one slip: with two edits "ab" would be nearer to "a" than to "ba".
TEST(Suggest, ASwapIsOneSlip) { EXPECT_EQ(nearest_word("abcd", {"abdx", "abdc"}), "abdc"); }

TEST(Suggest, WordsThatAreFarGetTheWholeList) {
  EXPECT_EQ(nearest_word("colour", kKeys), "");
  EXPECT_EQ(nearest_word("", kKeys), "");
  EXPECT_EQ(suggest("colour", kKeys), "expected one of cov, dim, learning_rate, mean, type");
  EXPECT_EQ(suggest("maen", kKeys), "did you mean mean?");
}

}  // namespace
}  // namespace esscher
