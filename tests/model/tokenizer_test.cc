#include "esscher/model/tokenizer.h"

#include <gmock/gmock.h>

#include <cmath>
#include <span>

#include "esscher/base/error.h"
#include "esscher/random/stream.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Ids 0 to 2 are marks and 3 to 258 bytes; the words follow.
Tokenizer small_tokenizer(const std::vector<std::pair<std::string, float>>& more) {
  std::vector<std::string> words{"<unk>", "<s>", "</s>"};
  for (int byte = 0; byte < 256; ++byte) words.push_back("<" + std::to_string(byte) + ">");
  std::vector<float> scores(words.size(), 0);
  for (const auto& [word, score] : more) {
    words.push_back(word);
    scores.push_back(score);
  }
  return {words, scores};
}

TEST(Tokenizer, JoinsTheBestPairFirst) {
  const Tokenizer tokenizer = small_tokenizer({{" ", -9},         // 259
                                               {"a", -9},         // 260
                                               {"b", -9},         // 261
                                               {"ab", -2},        // 262
                                               {"ba", -1},        // 263
                                               {" a", -3},        // 264
                                               {"é", -9}});       // 265
  EXPECT_THAT(tokenizer.encode("ab"), ElementsAre(1, 259, 262));  // "ab" before " a"
  EXPECT_THAT(tokenizer.encode("aba"), ElementsAre(1, 264, 263));
  EXPECT_THAT(tokenizer.encode("baba"), ElementsAre(1, 259, 263, 263));
  EXPECT_THAT(tokenizer.encode("é"), ElementsAre(1, 259, 265));
  // Characters without a word, and bytes that are no character, become bytes.
  EXPECT_THAT(tokenizer.encode("ü"), ElementsAre(1, 259, 3 + 0xC3, 3 + 0xBC));
  EXPECT_THAT(tokenizer.encode("\xC3"), ElementsAre(1, 259, 3 + 0xC3));
  EXPECT_EQ(encode_lines(tokenizer, "ab\r\n\nb").size(), 2u);
  EXPECT_THROW(Tokenizer({"x"}, {0}).encode("y"), ArgumentError);
}

// The definition: look at all pairs, join the best, begin again.
std::vector<Index> slow_encode(const std::vector<std::pair<std::string, float>>& words,
                               const std::string& text) {
  std::vector<std::string> row{" "};
  for (const char c : text) row.emplace_back(1, c);
  const auto place = [&](const std::string& word) {
    for (std::size_t i = words.size(); i-- > 0;) {
      if (words[i].first == word) return i;
    }
    return words.size();
  };
  for (;;) {
    std::size_t best = row.size();
    float score = 0;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      const std::size_t word = place(row[i] + row[i + 1]);
      if (word == words.size()) continue;
      if (best == row.size() || words[word].second > score) {
        best = i;
        score = words[word].second;
      }
    }
    if (best == row.size()) break;
    row[best] += row[best + 1];
    row.erase(row.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  std::vector<Index> out{1};
  for (const std::string& word : row) out.push_back(259 + static_cast<Index>(place(word)));
  return out;
}

TEST(Tokenizer, AgreesWithTheSlowTwinOnRandomWords) {
  const Stream stream(7, 1);
  std::uint64_t drawn = 0;
  const auto uniform = [&] { return stream.uniform(drawn++); };
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<std::pair<std::string, float>> words{{" ", -9}, {"a", -9}, {"b", -9}, {"c", -9}};
    const std::string letters = " abc";
    const auto letter = [&] { return letters[static_cast<std::size_t>(4 * uniform())]; };
    for (int k = 0; k < 40; ++k) {
      std::string word{letter(), letter()};
      while (uniform() < 0.5) word += letter();
      words.emplace_back(word, -std::floor(8 * static_cast<float>(uniform())));  // ties too
    }
    std::string text;
    for (int k = 0; k < 60; ++k) text += letter();
    EXPECT_EQ(small_tokenizer(words).encode(text), slow_encode(words, text)) << text;
  }
}

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::string message(const std::string& bytes, Index vocab) {
  try {
    parse_tokenizer("tokenizer.bin", std::as_bytes(std::span(bytes)), vocab);
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

TEST(Tokenizer, FilesAreReadWithinTheirBounds) {
  std::string bytes;
  append<std::int32_t>(bytes, 2);
  for (const std::string word : {"<unk>", "ab"}) {
    append(bytes, -1.5F);
    append(bytes, static_cast<std::int32_t>(word.size()));
    bytes += word;
  }
  EXPECT_EQ(parse_tokenizer("t", std::as_bytes(std::span(bytes)), 2).word(1), "ab");
  EXPECT_THAT(message(bytes, 3),
              HasSubstr("tokenizer.bin: word 2 is missing, expected the 3 words"));
  EXPECT_THAT(message(bytes, 1), HasSubstr("10 bytes behind word 0, expected 1 words"));
  EXPECT_THAT(message(bytes.substr(0, bytes.size() - 1), 2), HasSubstr("word 1 has 2 bytes"));
  EXPECT_THAT(message("", 1), HasSubstr("word 0 is missing"));
}

}  // namespace
}  // namespace esscher
