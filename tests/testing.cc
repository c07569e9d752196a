#include "tests/testing.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace esscher::testing {

namespace {

// RapidCheck draws a new seed per run unless told: a failure must be repeatable.
[[maybe_unused]] const int rapidcheck_seed = ::setenv("RC_PARAMS", "seed=20240601", 0);

std::atomic<std::int64_t> g_comparisons = 0;

// Writes how many random comparisons each test made.
class ComparisonCounter : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo&) override { g_comparisons = 0; }
  void OnTestEnd(const ::testing::TestInfo& test) override {
    if (g_comparisons == 0) return;
    namespace fs = std::filesystem;
    const fs::path folder = fs::path(ESSCHER_BINARY_DIR) / "comparisons";
    fs::create_directories(folder);
    std::string name = std::string(test.test_suite_name()) + "." + test.name();
    std::replace(name.begin(), name.end(), '/', '-');
    std::ofstream(folder / name) << g_comparisons << "\n";
  }
};

[[maybe_unused]] const bool counting = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new ComparisonCounter);
  return true;
}();

}  // namespace

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

AssertionResult close(double got, double want, double relative, double floor) {
  const double allowed = relative * std::max(std::abs(want), floor);
  const double error = std::abs(got - want);
  if (got == want || error <= allowed) return AssertionSuccess();
  return AssertionFailure() << "got " << got << ", want " << want << ", error " << error << " is "
                            << error / allowed << " times the allowed " << allowed;
}

AssertionResult close(const MatrixView& got, const MatrixView& want, double relative,
                      double floor) {
  if (got.rows() != want.rows() || got.cols() != want.cols()) {
    return AssertionFailure() << "shape [" << got.rows() << "," << got.cols() << "], want ["
                              << want.rows() << "," << want.cols() << "]";
  }
  if (want.size() == 0) return AssertionSuccess();
  const double scale = std::max(want.cwiseAbs().maxCoeff(), floor);
  const double error = (got - want).cwiseAbs().maxCoeff();
  if (error <= relative * scale) return AssertionSuccess();
  return AssertionFailure() << "largest error " << error << " is " << error / (relative * scale)
                            << " times the allowed " << relative * scale << "\ngot\n"
                            << got << "\nwant\n"
                            << want;
}

AssertionResult agrees(const Estimate& estimate, double truth) {
  ++g_comparisons;
  const double error = estimate.value - truth;
  if (!(estimate.std_error > 0) && error != 0) {
    return AssertionFailure() << "estimate " << estimate.value << " of truth " << truth
                              << " has no standard error";
  }
  if (std::abs(error) <= kSigmas * estimate.std_error) {
    return AssertionSuccess() << "z = " << error / estimate.std_error;
  }
  return AssertionFailure() << "estimate " << estimate.value << " +- " << estimate.std_error
                            << ", truth " << truth << ", z = " << error / estimate.std_error;
}

AssertionResult agree(const Estimate& a, const Estimate& b) {
  const Estimate difference{a.value - b.value, std::hypot(a.std_error, b.std_error),
                            std::min(a.n, b.n), a.engine};
  return agrees(difference, 0.0);
}

Matrix random_matrix(const Stream& stream, Index rows, Index cols, double scale) {
  Matrix m(rows, cols);
  stream.fill_normal(0, {m.data(), static_cast<std::size_t>(m.size())});
  return scale * m;
}

Matrix random_psd(const Stream& stream, Index d) {
  const Matrix X = random_matrix(stream, d, d);
  return X * X.transpose() / static_cast<double>(d);
}

std::string source_dir() { return ESSCHER_SOURCE_DIR; }
std::string binary_dir() { return ESSCHER_BINARY_DIR; }

}  // namespace esscher::testing
