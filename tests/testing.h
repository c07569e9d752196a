// Helpers shared by all tests: closeness with a named tolerance, the one statistical test, random
// matrices, messages of errors.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "esscher/base/estimate.h"
#include "esscher/base/linalg.h"
#include "esscher/random/stream.h"

namespace esscher::testing {

// |got - want| <= relative * max(|want|, floor). Prints both numbers and the ratio to the
// allowance.
::testing::AssertionResult close(double got, double want, double relative, double floor = 0.0);

// The same entry by entry, relative to the largest entry of want.
::testing::AssertionResult close(const MatrixView& got, const MatrixView& want, double relative,
                                 double floor = 0.0);

// The suite's false-alarm budget. P(|N(0,1)| > kSigmas) = 2.0e-9, so kMaxComparisons random
// comparisons at two-sided z = kSigmas keep the chance of any false alarm in the suite below 1e-4.
// agrees() counts them: every test leaves its number in BUILD/comparisons, and
// scripts/count_comparisons.py, a step of ./check, fails if their sum exceeds the budget.
inline constexpr double kMaxComparisons = 5e4;
inline constexpr double kSigmas = 6.0;

// |estimate - truth| <= kSigmas * std_error; prints z. Seeds are fixed, so a failure is repeatable.
// An estimate without a standard error is refused: such a comparison is close(), not this.
::testing::AssertionResult agrees(const Estimate& estimate, double truth);

// Two independent estimates of the same number.
::testing::AssertionResult agree(const Estimate& a, const Estimate& b);

// The root of the source tree and the folder of this build. They are functions, so that the command
// lines of tests are the same in every clone and the compiler cache knows them.
std::string source_dir();
std::string binary_dir();

// The first normals of a stream times `scale`, [rows, cols].
Matrix random_matrix(const Stream& stream, Index rows, Index cols, double scale = 1);

// X X' / d for such an X [d, d].
Matrix random_psd(const Stream& stream, Index d);

// What the error of type E says that `call` throws, or "no error". Other errors pass.
template <class E, class Call>
std::string message_of(const Call& call) {
  try {
    (void)call();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace esscher::testing
