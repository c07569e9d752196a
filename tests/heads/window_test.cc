#include "esscher/heads/window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "esscher/heads/detail/window_study.h"
#include "esscher/heads/diagnose.h"
#include "esscher/heads/window_control.h"
#include "esscher/heads/windowed_outputs.h"
#include "esscher/universal/free_energy.h"
#include "esscher/universal/universal.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using testing::random_matrix;

// A head whose keys have a mean, a drift and a few large ones.
struct Prompt {
  Matrix keys, values;
};

Prompt prompt_of(Index n, Index dk, Index dv) {
  Prompt out{random_matrix(Stream(31, 1), n, dk), random_matrix(Stream(31, 2), n, dv)};
  out.keys.rowwise() += 2 * random_matrix(Stream(31, 3), 1, dk).row(0);
  out.values += out.keys * random_matrix(Stream(31, 4), dk, dv);
  for (Index l = 0; l < n; l += 37) out.keys.row(l) *= 2;
  return out;
}

Vector softmax_output(const Prompt& p, const Vector& a) {
  const Vector s = p.keys * a;
  const Vector w = (s.array() - s.maxCoeff()).exp();
  return p.values.transpose() * w / w.sum();
}

// The definition, from all keys: sinks and last keys exact, moments of the others.
Vector slow_twin(const Prompt& p, const Vector& a, Index window, Index sinks, Tail tail) {
  const Index n = p.keys.rows();
  const Index end = n - (window - sinks);
  const Matrix k = p.keys.middleRows(sinks, end - sinks);
  const Matrix v = p.values.middleRows(sinks, end - sinks);
  const auto N = static_cast<double>(k.rows());
  const Vector mk = k.colwise().mean();
  const Vector mv = v.colwise().mean();
  const Matrix kc = k.rowwise() - mk.transpose();
  const Matrix vc = v.rowwise() - mv.transpose();
  const double tau2 = (kc * a).squaredNorm() / N;
  const Vector linear = vc.transpose() * (kc * a) / N;
  const double tau = std::sqrt(tau2);
  double mass = 0;
  Vector value = mv;
  if (tail == Tail::mean || tail == Tail::first) mass = N * std::exp(a.dot(mk));
  if (tail == Tail::gaussian) mass = N * std::exp(a.dot(mk) + tau2 / 2);
  if (tail == Tail::first || tail == Tail::gaussian) value += linear;
  if (tail == Tail::finite) {
    mass = std::exp(a.dot(mk) + free_energy(N, tau).F);
    value += universal(k.rows(), tau).M1 / tau2 * linear;
  }
  double total = mass;
  Vector sum = mass * value;
  for (Index l = 0; l < n; ++l) {
    if (l >= sinks && l < end) continue;
    const double w = std::exp(p.keys.row(l).dot(a));
    total += w;
    sum += w * p.values.row(l).transpose();
  }
  return sum / total;
}

TEST(Window, EveryTailIsItsDefinition) {
  const Prompt p = prompt_of(90, 5, 3);
  const Vector a = 0.4 * random_matrix(Stream(31, 5), 1, 5).row(0);
  for (const Tail tail : {Tail::none, Tail::mean, Tail::first, Tail::gaussian, Tail::finite}) {
    WindowedHead head(5, 3, {.window = 12, .sinks = 2, .tail = tail});
    head.push(p.keys, p.values);
    EXPECT_TRUE(close(head(a), slow_twin(p, a, 12, 2, tail), 1e-8)) << name(tail);
    EXPECT_EQ(head.exact_keys(), 12);
    EXPECT_EQ(head.state(), 12 * 8 + tail_state(tail, 5, 3)) << name(tail);
  }
}

TEST(Window, AWindowAsLongAsThePromptIsSoftmax) {
  const Prompt p = prompt_of(40, 4, 3);
  const Vector a = random_matrix(Stream(31, 6), 1, 4).row(0);
  for (const Index sinks : {0, 3, 40}) {
    WindowedHead head(4, 3, {.window = 40, .sinks = sinks});
    head.push(p.keys, p.values);
    EXPECT_TRUE(close(head(a), softmax_output(p, a), 1e-13)) << sinks;
  }
}

bool same_bits(const Vector& a, const Vector& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), sizeof(double) * a.size()) == 0;
}

TEST(Window, OneByOneAndTogetherAreTheSameBits) {
  const Prompt p = prompt_of(700, 7, 6);
  const Vector a = 0.3 * random_matrix(Stream(31, 7), 1, 7).row(0);
  for (const Tail tail : {Tail::mean, Tail::finite, Tail::rotary}) {
    const WindowOptions options{.window = 9, .sinks = 2, .tail = tail, .rotary = Rotary{.dims = 6}};
    WindowedHead together(7, 6, options);
    together.push(p.keys, p.values);
    for (const Index piece : {1, 5, 8, 64, 333}) {
      WindowedHead pieces(7, 6, options);
      for (Index at = 0; at < 700; at += piece) {
        const Index rows = std::min<Index>(piece, 700 - at);
        pieces.push(p.keys.middleRows(at, rows), p.values.middleRows(at, rows));
      }
      EXPECT_TRUE(same_bits(pieces(a), together(a))) << name(tail) << " " << piece;
      const Vector variance = pieces.parts(a).scores.variance;
      EXPECT_TRUE(same_bits(variance, together.parts(a).scores.variance)) << name(tail);
    }
  }
}

// A mixture of one component is the Gaussian tail; two far clusters are seen as two.
TEST(Window, MixtureTails) {
  Prompt p = prompt_of(400, 4, 3);
  for (Index l = 0; l < 400; l += 2) p.keys.row(l).array() += 6;
  p.values = p.keys * random_matrix(Stream(31, 9), 4, 3);
  const Vector a = 0.25 * random_matrix(Stream(31, 8), 1, 4).row(0);
  WindowOptions options{.window = 8, .sinks = 1, .tail = Tail::mixture};
  EXPECT_THROW(WindowedHead(4, 3, options), ArgumentError);
  MixtureFit one = fit_mixture(p.keys, 1, Stream(1));
  one.floor = 0;
  options.mixture = one;
  WindowedHead mixture(4, 3, options);
  mixture.push(p.keys, p.values);
  EXPECT_TRUE(close(mixture(a), slow_twin(p, a, 8, 1, Tail::gaussian), 1e-10));
  options.mixture = fit_mixture(p.keys, 2, Stream(1));
  WindowedHead two(4, 3, options);
  two.push(p.keys, p.values);
  const Vector T = softmax_output(p, a);
  EXPECT_LT((two(a) - T).norm(), 0.5 * (mixture(a) - T).norm());
}

// Keys of one fixed vector before rotation: the rotary tail is then exact, at any length.
TEST(Window, ARotaryTailOfOneKeyIsExact) {
  for (const RotaryPairs pairs : {RotaryPairs::interleaved, RotaryPairs::halves}) {
    const Rotary rotary{.base = 100, .pairs = pairs, .first = 3};
    const Matrix same = random_matrix(Stream(31, 10), 1, 6).replicate(60, 1);
    Prompt p{rotated(rotary, same, 0, false), random_matrix(Stream(31, 11), 1, 4).replicate(60, 1)};
    p.values.topRows(5) *= -3;  // the sinks
    const Vector a = 1.5 * random_matrix(Stream(31, 12), 1, 6).row(0);
    WindowedHead head(6, 4, {.window = 11, .sinks = 5, .tail = Tail::rotary, .rotary = rotary});
    head.push(p.keys, p.values);
    EXPECT_TRUE(close(head(a), softmax_output(p, a), 1e-12)) << name(pairs);
    EXPECT_TRUE(close(rotated(rotary, p.keys, 0, true), same, 1e-13));
    WindowedHead plain(6, 4, {.window = 11, .sinks = 5, .tail = Tail::gaussian});
    plain.push(p.keys, p.values);
    EXPECT_GT((plain(a) - softmax_output(p, a)).norm(), 1e-4);
  }
}

// One key in the middle takes most of the weight of every query; it must stay.
TEST(Window, HeavyKeysStay) {
  Prompt p = prompt_of(120, 4, 3);
  p.keys.rowwise() -= p.keys.colwise().mean();
  const Vector direction = Vector::Unit(4, 1);
  p.keys.row(30) = 12 * direction;
  p.values.row(30).setConstant(9);
  WindowedHead heavy(4, 3, {.window = 8, .sinks = 1, .heavy = 2});
  WindowedHead light(4, 3, {.window = 8, .sinks = 1});
  Vector at_end;
  for (Index l = 0; l < 120; ++l) {
    const Vector a =
        0.6 * direction + 0.1 * random_matrix(Stream(31, 50 + l), 1, 4).row(0).transpose();
    heavy.push(p.keys.row(l), p.values.row(l));
    light.push(p.keys.row(l), p.values.row(l));
    heavy.attend(a);
    at_end = a;
  }
  EXPECT_EQ(heavy.exact_keys(), 10);
  const Vector T = softmax_output(p, at_end);
  EXPECT_LT((heavy(at_end) - T).norm(), 0.05 * T.norm());
  EXPECT_GT((light(at_end) - T).norm(), 0.3 * T.norm());
  EXPECT_EQ(heavy(at_end), heavy.attend(at_end));
}

// The study reads a head as the decoding loop does, with every query weighing keys; a head whose
// earlier queries are not there has no such rows.
TEST(Window, HeavyRowsOfADiagnosisAreThoseOfALoop) {
  const Index n = 96;
  Prompt p = prompt_of(n, 4, 3);
  p.keys.row(20) *= 3;
  const Matrix Q = random_matrix(Stream(31, 70), n, 4);
  HeadOptions options;
  options.queries = {60, 75, 95};
  options.components.clear();
  options.windows = {8};
  options.heavy = 3;
  const Head head = make_head("h", Q, p.keys, p.values, 0.5, true);
  const HeadDiagnosis found = diagnose(head, options);
  const WindowRow& row = found.window->back();
  ASSERT_EQ(row.heavy, 3);
  EXPECT_EQ(row.tail, Tail::finite);
  EXPECT_EQ(row.state, 11 * (4 + 3 + 2) + tail_state(Tail::finite, 4, 3));
  const WindowOptions window{.window = 8, .sinks = 1, .heavy = 3};
  const Matrix loop = windowed_outputs(window, Q, p.keys, p.values, 0.5);
  std::vector<double> errors;
  for (const Index i : options.queries) {
    const Prompt seen{p.keys.topRows(i + 1), p.values.topRows(i + 1)};
    const Vector T = softmax_output(seen, 0.5 * Q.row(i).transpose());
    errors.push_back((loop.row(i).transpose() - T).norm() / T.norm());
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_TRUE(close(row.lin, errors[1], 1e-9));
  const Head decode = make_head("d", Q.bottomRows(40), p.keys, p.values, 0.5, true);
  options.queries.clear();
  const HeadDiagnosis without = diagnose(decode, options);
  for (const WindowRow& other : *without.window) EXPECT_FALSE(other.heavy);
}

// Without a window the expectations are the universal functions, at every length.
TEST(Window, ControlWithoutAWindowIsTheExactEngine) {
  for (const std::int64_t n : {1LL, 2LL, 30LL, 5000LL, 1000000000LL}) {
    for (const double tau : {0.3, 1.2, 4.0}) {
      const Universal u = universal(n, tau);
      const WindowExpectations w = window_expectations(n, tau, -200);
      EXPECT_TRUE(close(w.score, u.M1, 1e-9, 1e-3)) << n << " " << tau;
      EXPECT_TRUE(close(w.h, u.H, 1e-9)) << n << " " << tau;
      const double second = u.M2c + 2 * tau * tau * u.M1 - std::pow(tau, 4);
      EXPECT_TRUE(close(w.score2, second, 1e-9)) << n << " " << tau;
      EXPECT_LT(w.exact, 1e-20);
    }
  }
}

// Planted keys and a Gaussian rest: the measured error is on average what the control says.
TEST(Window, PlantedKeysAndAGaussianRest) {
  constexpr Index kDim = 3;
  const Vector a = Vector::Constant(kDim, 0.7);
  const Matrix W = random_matrix(Stream(32, 1), kDim, 2);
  const Matrix planted = 1.5 * random_matrix(Stream(32, 2), 4, kDim);
  const Matrix planted_values = 3 * random_matrix(Stream(32, 3), 4, 2);
  const double tau = a.norm();
  for (const Index n : {1, 6, 60}) {
    WindowParts parts;
    const Vector s = planted * a;
    const Vector w = s.array().exp();
    parts.exact = {.log_mass = std::log(w.sum()),
                   .value = planted_values.transpose() * w / w.sum()};
    parts.count = static_cast<double>(n);
    parts.scores = {Vector::Ones(1),
                    Vector::Zero(1),
                    Vector::Constant(1, tau * tau),
                    Matrix::Zero(1, 2),
                    (W.transpose() * a).transpose(),
                    Vector::Constant(1, W.squaredNorm() + 2 * 0.25)};
    const WindowExpectations expected = *window_expectations(parts);
    for (const Tail tail : {Tail::none, Tail::first, Tail::gaussian, Tail::finite}) {
      const Vector surrogate = combine(tail, parts);
      Moments error2;
      for (int r = 0; r < 4000; ++r) {
        const Stream stream = Stream(33, n).split(r);
        Prompt p{random_matrix(stream.split(1), n + 4, kDim), Matrix()};
        p.values = p.keys * W + 0.5 * random_matrix(stream.split(2), n + 4, 2);
        p.keys.topRows(4) = planted;
        p.values.topRows(4) = planted_values;
        error2.add((softmax_output(p, a) - surrogate).squaredNorm());
      }
      EXPECT_TRUE(testing::agrees(error2.estimate(Engine::direct),
                                  window_control(parts, expected, surrogate)))
          << n << " " << name(tail);
    }
    // No tail errs less than the mean output.
    const Vector mean =
        expected.exact * parts.exact.value + expected.score / (tau * tau) * (W.transpose() * a);
    const double least = window_control(parts, expected, mean);
    for (const Tail tail : {Tail::none, Tail::mean, Tail::first, Tail::gaussian, Tail::finite}) {
      EXPECT_LT(least, window_control(parts, expected, combine(tail, parts))) << n;
    }
  }
}

TEST(Window, TheVerdictSpeaksOfTheCheapestRowWithinTolerance) {
  const auto rows = [] {
    return std::vector<WindowRow>{{.w = 8, .tail = Tail::finite, .lin_c = 0.12, .state = 80},
                                  {.w = 16, .tail = Tail::mean, .lin_c = 0.09, .state = 120},
                                  {.w = 32, .tail = Tail::none, .lin_c = 0.05, .state = 200},
                                  {.w = 8, .tail = Tail::mixture, .lin_c = 0.01, .state = 90},
                                  {.w = 64, .tail = Tail::none, .lin_c = 0.001, .state = 501}};
  };
  const auto best = [](const std::vector<WindowRow>& all) {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].best.value()) out.push_back(i);
    }
    return out;
  };
  std::vector<WindowRow> all = rows();
  EXPECT_EQ(judge_windows(all, 0.1, 1000),
            "linear beyond 16 keys: error 0.09 with 120 numbers instead of n(dₖ + dᵥ) = 1000 "
            "(tail: mean)");
  EXPECT_EQ(best(all), (std::vector<std::size_t>{1}));
  EXPECT_EQ(judge_windows(all, 0.06, 1000),
            "local, 32 keys suffice: error 0.05 with 200 numbers instead of n(dₖ + dᵥ) = 1000 "
            "(tail: none)");
  all[2].heavy = 4;
  EXPECT_EQ(judge_windows(all, 0.01, 1000),
            "no window that was tried is within 1 % in half of the numbers; the best keeps 32 keys "
            "and 4 heavy ones: error 0.05 with 200 numbers instead of n(dₖ + dᵥ) = 1000 (tail: "
            "none)");
  EXPECT_EQ(best(all), (std::vector<std::size_t>{2}));
  EXPECT_EQ(judge_windows(all, 0.1, 100),
            "no window with a tail takes half of the numbers that softmax keeps");
  EXPECT_TRUE(best(all).empty());
}

TEST(Window, BadOptionsAreNamed) {
  EXPECT_THROW(WindowedHead(0, 3, {}), ArgumentError);
  EXPECT_THROW(WindowedHead(4, 3, {.window = 0, .sinks = 0}), ArgumentError);
  EXPECT_THROW(WindowedHead(4, 3, {.window = 2, .sinks = 3}), ArgumentError);
  EXPECT_THROW(WindowedHead(4, 3, {.tail = Tail::rotary}), ArgumentError);
  EXPECT_THROW(WindowedHead(5, 3, {.tail = Tail::rotary, .rotary = Rotary{}}), ArgumentError);
  WindowedHead head(4, 3, {.tail = Tail::mean});
  EXPECT_THROW((void)head(Vector::Zero(4)), CapabilityError);
  EXPECT_THROW(head.push(Matrix::Zero(2, 3), Matrix::Zero(2, 3)), DimensionError);
  head.push(Matrix::Zero(2, 4), Matrix::Zero(2, 3));
  EXPECT_THROW((void)head(Vector::Zero(3)), DimensionError);
  EXPECT_THROW((void)head(Vector::Zero(4), Tail::finite), CapabilityError);
}

TEST(WindowedOutputs, AreThoseOfALoop) {
  const Prompt p = prompt_of(60, 4, 3);
  const Matrix Q = random_matrix(Stream(31, 9), 60, 4);
  const WindowOptions options{.window = 9, .heavy = 2};
  const Matrix all = windowed_outputs(options, Q, p.keys, p.values, 0.3);
  WindowedHead head(4, 3, options);
  for (Index i = 0; i < 60; ++i) {
    head.push(p.keys.row(i), p.values.row(i));
    EXPECT_EQ(all.row(i).transpose(), head.attend(0.3 * Q.row(i).transpose())) << i;
  }
  // Queries at the end of a cache; without a mask all keys come first.
  const WindowOptions light{.window = 9};
  const Matrix last = Q.bottomRows(5);
  const Matrix whole = windowed_outputs(light, Q, p.keys, p.values, 0.3);
  EXPECT_EQ(windowed_outputs(light, last, p.keys, p.values, 0.3), whole.bottomRows(5));
  const Matrix open = windowed_outputs(light, last, p.keys, p.values, 0.3, false);
  EXPECT_EQ(open.row(4), whole.row(59));
  EXPECT_NE(open.row(0), whole.row(55));
  EXPECT_THROW((void)windowed_outputs(options, last, p.keys, p.values, 0.3), ArgumentError);
  EXPECT_THROW((void)windowed_outputs(options, Q, p.keys, p.values, 0.3, false), ArgumentError);
  EXPECT_THROW((void)windowed_outputs(light, Q, p.keys.topRows(9), p.values.topRows(9), 0.3),
               ArgumentError);
}

}  // namespace
}  // namespace esscher
