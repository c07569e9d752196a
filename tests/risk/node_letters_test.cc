// Letters of nodes in SIMD lanes against the same forms written with the covariance of a token.
#include "esscher/risk/detail/node_letters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "esscher/simd/targets.h"
#include "esscher/task/regression.h"
#include "tests/risk/regression_cases.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using detail::LetterBlock;
using detail::LetterMaps;
using detail::NodeRows;
using testing::close;
using testing::random_matrix;

struct Nodes {
  Matrix w, x;
  Matrix back;  // [n,3]: derivatives in g, tau^2 and q
};

Nodes random_nodes(Index n, Index d) {
  return {random_matrix(Stream(3), n, d), random_matrix(Stream(4), n, d),
          random_matrix(Stream(5), n, 3)};
}

// (w, x) and (-w, x), with derivatives that mirror images have.
Nodes random_pairs(Index half, Index d) {
  const Nodes one = random_nodes(half, d);
  Nodes out{Matrix(2 * half, d), Matrix(2 * half, d), Matrix(2 * half, 3)};
  out.w << one.w, -one.w;
  out.x << one.x, one.x;
  out.back << one.back, one.back;
  out.back.col(0).tail(half) *= -1;
  return out;
}

Readout slope_of(const NodeRows& rows, const LetterMaps& maps, const Nodes& nodes,
                 const std::function<void(Index, LetterBlock&, Index)>& look) {
  LetterBlock letters(maps.d);
  Readout slope = Readout::zero(maps.d + 1);
  for (Index block = 0; block < rows.blocks(); ++block) {
    make_letters(rows, maps, block, letters);
    const auto fill = [](double* row) { std::fill(row, row + NodeRows::kBlock, 0.0); };
    fill(letters.d_g()), fill(letters.d_tau2()), fill(letters.d_q());
    for (Index i = 0; i < nodes.w.rows(); ++i) {
      const Index k = rows.slot(i) - block * NodeRows::kBlock;
      if (k < 0 || k >= NodeRows::kBlock) continue;
      look(i, letters, k);
      letters.d_g()[k] = nodes.back(i, 0);
      letters.d_tau2()[k] = 2 * nodes.back(i, 1);
      letters.d_q()[k] = 2 * nodes.back(i, 2);
    }
    add_slope(rows, maps, block, letters, slope);
  }
  return slope;
}

void expect_twin(const LinearRegressionTask& task, const Readout& at, const Nodes& nodes) {
  const Index d = task.dim, n = nodes.w.rows();
  const Vector weight = Vector::Ones(n);
  const NodeRows rows(nodes.w, nodes.x, weight, task.prompt_cov, task.noise_variance);
  const LetterMaps maps(task.prompt_cov, at);
  Readout want = Readout::zero(d + 1);
  Index seen = 0;
  const Readout slope = slope_of(rows, maps, nodes, [&](Index i, LetterBlock& letters, Index k) {
    const Vector w = nodes.w.row(i), back = nodes.back.row(i);
    Vector x = Vector::Zero(d + 1);
    x.head(d) = nodes.x.row(i);
    const Matrix G = token_covariance(task, w);
    const Vector a = at.U * x, Ga = G * a, Gr = G * at.r;
    EXPECT_TRUE(close(letters.tau2()[k], a.dot(Ga), 1e-13));
    EXPECT_TRUE(close(letters.g()[k], at.r.dot(Ga), 1e-12, 1));
    EXPECT_TRUE(close(letters.q()[k], at.r.dot(Gr), 1e-13));
    EXPECT_TRUE(close(rows.target()[rows.slot(i)], w.dot(x.head(d)), 1e-13, 1));
    want.U += (back(0) * Gr + 2 * back(1) * Ga) * x.transpose();
    want.r += back(0) * Ga + 2 * back(2) * Gr;
    ++seen;
  });
  EXPECT_EQ(seen, n);
  EXPECT_TRUE(close(slope.U, want.U, 1e-12, want.U.cwiseAbs().maxCoeff()));
  EXPECT_TRUE(close(slope.r, want.r, 1e-12, want.r.cwiseAbs().maxCoeff()));
}

// Runs the body on every instruction set for tasks of several dimensions.
template <class Body>
void everywhere(const Body& body) {
  for (const std::string& target : simd::supported_targets()) {
    SCOPED_TRACE(target);
    simd::force_target(target);
    for (const Index d : {1L, 2L, 5L, 8L, 11L}) {
      LinearRegressionTask task = testing::general_task(d, Stream(1).split(d));
      body(task, testing::random_readout(d + 1, 0.7, Stream(2).split(d)));
    }
  }
  simd::force_target("");
}

TEST(NodeLetters, EqualThePlainFormsOnEveryTarget) {
  everywhere([](const LinearRegressionTask& task, const Readout& at) {
    for (const Index n : {1L, 3L, 7L, 255L, 256L, 257L, 601L}) {
      SCOPED_TRACE("d " + std::to_string(task.dim) + " n " + std::to_string(n));
      expect_twin(task, at, random_nodes(n, task.dim));
      expect_twin(task, at, random_pairs(n, task.dim));
    }
  });
}

TEST(NodeLetters, SameBitsOnEveryTarget) {
  const Index d = 5;
  const LinearRegressionTask task = testing::general_task(d, Stream(1));
  const Readout at = testing::random_readout(d + 1, 0.7, Stream(2));
  for (const Nodes& nodes : {random_nodes(601, d), random_pairs(301, d)}) {
    const NodeRows rows(nodes.w, nodes.x, Vector::Ones(nodes.w.rows()), task.prompt_cov, 0.3);
    const auto slope = [&](const std::string& target) {
      simd::force_target(target);
      return slope_of(rows, LetterMaps(task.prompt_cov, at), nodes,
                      [](Index, LetterBlock&, Index) {});
    };
    const Readout best = slope("");
    for (const std::string& target : simd::supported_targets()) {
      const Readout other = slope(target);
      EXPECT_TRUE(best.U == other.U && best.r == other.r) << target;
    }
  }
  simd::force_target("");
}

// What is 0 because w and -w are alike is 0 in every bit.
TEST(NodeLetters, SymmetryIsExact) {
  everywhere([](const LinearRegressionTask& task, Readout at) {
    const Index d = task.dim;
    at.U.row(d).setZero();
    at.r.head(d).setZero();
    const Nodes nodes = random_pairs(301, d);
    const NodeRows rows(nodes.w, nodes.x, Vector::Ones(602), task.prompt_cov, task.noise_variance);
    ASSERT_TRUE(rows.paired());
    const Readout slope =
        slope_of(rows, LetterMaps(task.prompt_cov, at), nodes, [](Index, LetterBlock&, Index) {});
    EXPECT_TRUE(slope.U.row(d).isZero(0));
    EXPECT_TRUE(slope.r.head(d).isZero(0));
    EXPECT_GT(slope.U.topLeftCorner(d, d).norm(), 1);
  });
}

}  // namespace
}  // namespace esscher
