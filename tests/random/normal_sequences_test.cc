#include "esscher/random/normal_sequences.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "esscher/simd/targets.h"
#include "tests/random/run_twin.h"

namespace esscher {
namespace {

void expect_plain_runs() {
  const Stream stream(25, 7);
  for (const std::size_t sequences : {1U, 5U, 8U, 16U, 19U}) {
    std::vector<std::uint64_t> first;
    for (std::size_t j = 0; j < sequences; ++j) first.push_back((std::uint64_t{j} << 33) + 3 * j);
    for (const std::size_t n : {1U, 2U, 11U, 32U, 33U, 100U}) {
      std::vector<double> out(n * sequences);
      fill_normal_sequences(stream, first, out);
      for (std::size_t j = 0; j < sequences; ++j) {
        const std::vector<double> want = testing::run_of_normals(stream, first[j], n);
        for (std::size_t i = 0; i < n; ++i) {
          EXPECT_NEAR(out[i * sequences + j], want[i], 2e-6) << i << " of sequence " << j;
        }
      }
    }
  }
}

TEST(NormalSequences, EqualThePlainGeneratorOnEveryTarget) {
  for (const std::string& target : simd::supported_targets()) {
    SCOPED_TRACE(target);
    simd::force_target(target);
    expect_plain_runs();
  }
  simd::force_target("");
}

TEST(NormalSequences, ARunDoesNotSeeItsCompany) {
  const Stream stream(26);
  std::vector<double> company(23 * 9);
  const std::vector<std::uint64_t> first = {4, 0, 9, 1, 2, 3, 5, 6, 7};
  fill_normal_sequences(stream, first, company);
  for (std::size_t j = 0; j < first.size(); ++j) {
    std::vector<double> alone(23);
    fill_normal_sequences(stream, {&first[j], 1}, alone);
    for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(alone[i], company[i * 9 + j]);
  }
}

}  // namespace
}  // namespace esscher
