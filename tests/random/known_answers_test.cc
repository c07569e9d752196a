// tests/data/philox_kat.txt was made by an independent NumPy program; every SIMD target must agree.
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <sstream>
#include <vector>

#include "esscher/random/stream.h"
#include "esscher/simd/targets.h"
#include "tests/testing.h"

namespace esscher {
namespace {

struct Answer {
  std::string kind;
  std::uint64_t seed, stream, index;
  std::vector<std::uint64_t> values;
};

std::vector<Answer> known_answers() {
  std::ifstream file(testing::source_dir() + "/tests/data/philox_kat.txt");
  std::vector<Answer> answers;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    Answer a;
    words >> a.kind >> std::hex >> a.seed >> a.stream >> a.index;
    for (std::uint64_t value = 0; words >> value;) a.values.push_back(value);
    answers.push_back(a);
  }
  return answers;
}

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
std::uint64_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

// A fill that starts a few values earlier, so that `index` falls inside the vector body.
template <class T, class Fill>
T through_fill(std::uint64_t index, const Fill& fill) {
  std::vector<T> out(80);
  const std::uint64_t back = index < 40 ? index : 40;
  fill(index - back, std::span<T>(out));
  return out[back];
}

void check_all() {
  const std::vector<Answer> answers = known_answers();
  ASSERT_EQ(answers.size(), 225U);
  for (const Answer& a : answers) {
    SCOPED_TRACE(a.kind + " " + std::to_string(a.index));
    const Stream s(a.seed, a.stream);
    if (a.kind == "block") {
      for (std::size_t j = 0; j < 4; ++j) EXPECT_EQ(s.block(a.index)[j], a.values[j]);
    } else if (a.kind == "split") {
      EXPECT_EQ(s.split(a.index).id(), a.values[0]);
      EXPECT_EQ(s.split(a.index).seed(), a.seed);
    } else if (a.kind == "uniform") {
      EXPECT_EQ(bits(s.uniform(a.index)), a.values[0]);
      EXPECT_EQ(
          bits(through_fill<double>(a.index, [&](auto i, auto out) { s.fill_uniform(i, out); })),
          a.values[0]);
    } else if (a.kind == "normal") {
      EXPECT_EQ(bits(s.normal(a.index)), a.values[0]);
      EXPECT_EQ(
          bits(through_fill<double>(a.index, [&](auto i, auto out) { s.fill_normal(i, out); })),
          a.values[0]);
    } else {
      ASSERT_EQ(a.kind, "normal32");
      EXPECT_EQ(bits(s.normal32(a.index)), a.values[0]);
      EXPECT_EQ(
          bits(through_fill<float>(a.index, [&](auto i, auto out) { s.fill_normal(i, out); })),
          a.values[0]);
    }
  }
}

TEST(PhiloxKnownAnswers, OnEveryTarget) {
  for (const std::string& target : simd::supported_targets()) {
    SCOPED_TRACE(target);
    simd::force_target(target);
    ASSERT_EQ(simd::active_target(), target);
    check_all();
  }
  simd::force_target("");
}

TEST(Fill, EveryLengthAndStart) {
  const Stream s(3, 5);
  for (std::uint64_t first = 0; first < 5; ++first) {
    for (std::size_t n = 0; n < 70; ++n) {
      std::vector<double> u(n);
      std::vector<double> x(n);
      std::vector<float> y(n);
      s.fill_uniform(first, u);
      s.fill_normal(first, x);
      s.fill_normal(first, std::span<float>(y));
      for (std::size_t j = 0; j < n; ++j) {
        ASSERT_EQ(bits(u[j]), bits(s.uniform(first + j)));
        ASSERT_EQ(bits(x[j]), bits(s.normal(first + j)));
        ASSERT_EQ(bits(y[j]), bits(s.normal32(first + j)));
      }
    }
  }
}

}  // namespace
}  // namespace esscher
