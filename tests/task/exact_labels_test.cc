#include "esscher/task/exact_labels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include "esscher/estimate/moments.h"
#include "esscher/risk/layer_risk.h"
#include "esscher/task/index_posterior.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;

const Link kSin(LinkName::sin), kTanh(LinkName::tanh), kErf(LinkName::erf),
    kProbit(LinkName::probit), kRelu(LinkName::relu);

SingleIndexTask exact_labels(Index d, const Link& link, IndexLaw law = IndexLaw::gaussian) {
  SingleIndexTask task;
  task.cov = Matrix::Identity(d, d);
  task.cov(0, 0) = 1.7;
  task.link = link;
  task.index_law = law;
  task.task_variance = 1.3;
  return task;
}

struct Drawn {
  Matrix X;
  Vector y, x;
};
Drawn draw(const SingleIndexTask& task, Index L, std::uint64_t seed) {
  const Index d = task.cov.rows();
  const ContextNode node = draw_node(single_index_task(task), Stream(seed));
  const Matrix prompt = node.tokens->measure().sample(Stream(seed + 1), L).tokens();
  return {prompt.leftCols(d), prompt.col(d), node.query.head(d)};
}

// Zeros of f on [low, high] with 1/|f'|, by a fine grid and bisection.
struct Zero {
  double at, weight;
};
std::vector<Zero> zeros(const std::function<double(double)>& f, double low, double high) {
  constexpr int kPoints = 20000;
  std::vector<Zero> out;
  for (int i = 0; i < kPoints; ++i) {
    double a = low + (high - low) * i / kPoints, b = low + (high - low) * (i + 1) / kPoints;
    const double fa = f(a);
    if (fa * f(b) > 0) continue;
    for (int k = 0; k < 60; ++k) {
      const double middle = (a + b) / 2;
      (f(middle) * fa > 0 ? a : b) = middle;
    }
    out.push_back({a, 2e-6 / std::abs(f(a + 1e-6) - f(a - 1e-6))});
  }
  return out;
}

// E[g(w'x) | one label] for w in the plane, by one-dimensional integrals of delta(g(w'x_1) - y): zeros
// along lines w = r x_1/|x_1| + t n for Gaussian w, along the circle for others.
double by_one_label(const SingleIndexTask& task, const Drawn& at) {
  const double s = std::sqrt(task.task_variance);
  const Vector x1 = at.X.row(0).transpose();
  double mass = 0, sum = 0;
  if (task.index_law == IndexLaw::sphere) {
    const auto w = [&](double angle) {
      return Vector(s * Vector{{std::cos(angle), std::sin(angle)}});
    };
    for (const Zero& zero : zeros([&](double a) { return task.link(w(a).dot(x1)) - at.y[0]; }, 0.01,
                                  0.01 + 2 * std::numbers::pi)) {
      mass += zero.weight;
      sum += zero.weight * task.link(w(zero.at).dot(at.x));
    }
    return sum / mass;
  }
  const Vector along = x1 / x1.norm(), beside = Vector{{-along[1], along[0]}};
  for (const Zero& zero :
       zeros([&](double r) { return task.link(r * x1.norm()) - at.y[0]; }, -9.001 * s, 9.002 * s)) {
    for (double t = -8 * s; t <= 8 * s; t += s / 50) {
      const double own = zero.weight * std::exp(-(zero.at * zero.at + t * t) / (2 * s * s));
      mass += own;
      sum += own * task.link((zero.at * along + t * beside).dot(at.x));
    }
  }
  return sum / mass;
}

TEST(ExactLabels, OneLabelInThePlaneByOneDimensionalIntegrals) {
  for (const IndexLaw law : {IndexLaw::gaussian, IndexLaw::sphere}) {
    for (const Link& link : {kSin, kTanh, kErf, kProbit, Link::polynomial(0.3, -0.8, 0.6),
                             Link::polynomial(0, 0, 1)}) {
      const SingleIndexTask task = exact_labels(2, link, law);
      for (const std::uint64_t seed : {1, 2, 3, 4}) {
        const Drawn at = draw(task, 1, seed);
        if (std::abs(std::abs(at.y[0]) - 1) < 1e-6) continue;  // zeros of the grid need a slope
        const double want = by_one_label(task, at);
        EXPECT_NEAR(exact_label_mean(task, at.X, at.y, at.x), want,
                    1e-5 * std::max(1.0, std::abs(want)))
            << link.name() << " " << name(law) << " " << seed;
      }
    }
  }
}

// A prediction m(prompt) is the posterior mean if and only if (f_0 - m) h(prompt) is 0 on average for
// every h; here for m itself and for a product with the labels.
TEST(ExactLabels, WhatIsLeftIsOrthogonalToThePrompt) {
  struct Case {
    Index d, L;
    Link link;
    IndexLaw law;
  };
  for (const Case& c : std::vector<Case>{{3, 1, kSin, IndexLaw::gaussian},
                                         {3, 2, kSin, IndexLaw::gaussian},
                                         {3, 3, kSin, IndexLaw::gaussian},
                                         {3, 2, kSin, IndexLaw::sphere},
                                         {4, 2, kTanh, IndexLaw::sphere},
                                         {4, 3, kTanh, IndexLaw::gaussian},
                                         {3, 2, Link::polynomial(0, 1, 0.7), IndexLaw::sphere},
                                         {3, 3, Link::polynomial(0, 1, 0.7), IndexLaw::gaussian}}) {
    const SingleIndexTask task = exact_labels(c.d, c.link, c.law);
    const ContextTask context = single_index_task(task);
    Moments own, product, left;
    for (std::uint64_t i = 0; i < 5000; ++i) {
      const ContextNode node = draw_node(context, Stream(91).split(i));
      const Matrix prompt = node.tokens->measure().sample(Stream(92).split(i), c.L).tokens();
      const double m = context.posterior_mean(prompt, node.query)[0], gap = node.target[0] - m;
      own.add(gap * m);
      product.add(gap * prompt(0, c.d) * prompt(0, 0) * node.query[0]);
      left.add(gap * gap);
    }
    const std::string who = c.link.name() + " d " + std::to_string(c.d) + " L " +
                            std::to_string(c.L) + " " + std::string(name(c.law));
    EXPECT_TRUE(agrees(own.estimate(Engine::direct), 0)) << who;
    EXPECT_TRUE(agrees(product.estimate(Engine::direct), 0)) << who;
    EXPECT_GT(left.estimate(Engine::direct).value, 1e-3) << who << ": nothing is left to be tested";
  }
}

// From these lengths on the prediction is the label itself, and tokens that a singular covariance
// makes dependent say nothing new.
TEST(ExactLabels, EnoughOfThemTellTheLabel) {
  struct Case {
    Index d, L;
    Link link;
    IndexLaw law;
    bool singular;
  };
  for (const Case& c :
       std::vector<Case>{{3, 3, kTanh, IndexLaw::gaussian, false},
                         {3, 4, kSin, IndexLaw::gaussian, false},
                         {2, 3, Link::polynomial(0, 1, 0.7), IndexLaw::gaussian, false},
                         {3, 3, kSin, IndexLaw::sphere, false},
                         {3, 3, kErf, IndexLaw::gaussian, true},
                         {3, 3, kSin, IndexLaw::gaussian, true},
                         {3, 3, Link::polynomial(0, 1, 0.7), IndexLaw::sphere, true}}) {
    SingleIndexTask task = exact_labels(c.d, c.link, c.law);
    if (c.singular) task.cov(2, 2) = 0;
    for (const std::uint64_t seed : {51, 52, 53, 54, 55}) {
      const ContextNode node = draw_node(single_index_task(task), Stream(seed));
      const Drawn at = draw(task, c.L, seed);
      EXPECT_NEAR(exact_label_mean(task, at.X, at.y, at.x), node.target[0], 1e-5)
          << c.link.name() << " " << c.singular << " " << seed;
    }
  }
}

// Labels of relu: those that are not 0 are equations, those that are 0 leave a half space. Brute force
// draws w from the prior, restricted by hand.
TEST(ExactLabels, ReluByBruteForce) {
  for (const IndexLaw law : {IndexLaw::gaussian, IndexLaw::sphere}) {
    const SingleIndexTask task = exact_labels(2, kRelu, law);
    const double s = std::sqrt(task.task_variance);
    std::set<Index> seen;
    for (const std::uint64_t seed : {61, 62, 63, 64, 65, 66, 67, 68}) {
      const Drawn at = draw(task, 2, seed);
      double mass = 0, sum = 0;
      const auto add = [&](const Vector& w, double weight) {
        for (Index i = 0; i < 2; ++i) {
          if (at.y[i] == 0 && w.dot(at.X.row(i).transpose()) > 0) return;
        }
        mass += weight;
        sum += weight * kRelu(w.dot(at.x));
      };
      const Index equations = (at.y.array() > 0).count(), one = at.y[0] > 0 ? 0 : 1;
      const Vector x1 = at.X.row(one).transpose();
      seen.insert(equations);
      if (equations == 2) {
        const Matrix& X = at.X;
        const double det = X(0, 0) * X(1, 1) - X(0, 1) * X(1, 0);
        add(Vector{{at.y[0] * X(1, 1) - at.y[1] * X(0, 1), at.y[1] * X(0, 0) - at.y[0] * X(1, 0)}} /
                det,
            1);
      } else if (equations == 1 && law == IndexLaw::sphere) {
        const double middle = std::atan2(x1[1], x1[0]);
        const double half = std::acos(at.y[one] / (s * x1.norm()));
        for (const double angle : {middle + half, middle - half}) {
          add(s * Vector{{std::cos(angle), std::sin(angle)}}, 1);
        }
      } else if (equations == 1) {
        const Vector first = at.y[one] / x1.squaredNorm() * x1;
        const Vector beside = Vector{{-x1[1], x1[0]}} / x1.norm();
        for (double t = -8 * s; t <= 8 * s; t += s / 1000) {
          add(first + t * beside, std::exp(-t * t / (2 * s * s)));
        }
      } else {
        for (int i = 0; i < 400000; ++i) {
          Vector g(2);
          Stream(seed, 9).split(static_cast<std::uint64_t>(i)).fill_normal(0, {g.data(), 2});
          add(s / (law == IndexLaw::sphere ? g.norm() : 1) * g, 1);
        }
      }
      const double found = chain_mean(exact_relu_evidence(task, at.X, at.y, at.x), 2,
                                      {.burn = 500, .keep = 200000}, Stream(seed))[0];
      EXPECT_NEAR(found, sum / mass, 0.03) << name(law) << " " << seed << " " << equations;
    }
    EXPECT_EQ(seen.size(), 3u) << name(law);
  }
}

TEST(ExactLabels, SayHowTheyAreRead) {
  const auto by = [](Index d, const Link& link, IndexLaw law = IndexLaw::gaussian) {
    return exact_labels_by(exact_labels(d, link, law));
  };
  EXPECT_EQ(by(3, kSin), PosteriorBy::formula);
  EXPECT_EQ(by(3, kTanh), PosteriorBy::quadrature);
  EXPECT_EQ(by(3, kErf, IndexLaw::sphere), PosteriorBy::quadrature);
  EXPECT_EQ(by(3, kRelu), PosteriorBy::chains);
  EXPECT_EQ(by(12, kSin), std::nullopt);
  EXPECT_EQ(by(16, Link::polynomial(0, 1, 1)), std::nullopt);
  EXPECT_EQ(by(3, Link::polynomial(1, 0, 0)), std::nullopt);
  EXPECT_EQ(by(3, Link(LinkName::sign)), std::nullopt);
  EXPECT_EQ(
      by(3, Link::custom([](auto t, auto out) { std::copy(t.begin(), t.end(), out.begin()); })),
      std::nullopt);
  EXPECT_EQ(labels_that_tell(exact_labels(3, kTanh)), 3);
  EXPECT_EQ(labels_that_tell(exact_labels(3, kSin)), 4);
  EXPECT_EQ(labels_that_tell(exact_labels(1, kRelu)), 54);  // 2^-54 < 1e-16 < 2^-53
}

}  // namespace
}  // namespace esscher
