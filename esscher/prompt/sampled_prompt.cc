#include "esscher/prompt/sampled_prompt.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "esscher/base/basis.h"
#include "esscher/base/eigensystem.h"
#include "esscher/base/error.h"
#include "esscher/prompt/sampled_sums.h"
#include "esscher/random/draws.h"

namespace esscher {
namespace {

constexpr std::int64_t kRowTokens = 4096;  // tokens of one SIMD lane at a time
constexpr std::size_t kRowsAtOnce = 64;
constexpr double kRankTolerance = 1e-13;

// The first column points along F'a (it is any unit vector if F'a = 0); the others add the
// directions of R. A single direction is completed to two whenever the space allows it, because the
// pair kernel also gives the noise of the second one.
Matrix direction_basis(const Vector& tilt, const Matrix& functionals) {
  const Index k = tilt.size();
  if (k == 0) return Matrix(0, 0);
  const double tau = tilt.norm();
  Matrix E(k, 1);
  E.col(0) = tau > 0 ? Vector(tilt / tau) : Vector(Vector::Unit(k, 0));
  if (functionals.cols() == 0 || k == 1) return E;
  const auto off_span = [&](const Eigen::MatrixXd& x) -> Eigen::MatrixXd {
    const Eigen::MatrixXd once = x - E * (E.transpose() * x);
    return once - E * (E.transpose() * once);
  };
  const Eigen::MatrixXd rest = off_span(functionals);
  const Index most = std::min(rest.cols(), k - 1);
  const Eigen::MatrixXd added = orthonormal_basis(rest, kRankTolerance * functionals.norm(), most);
  const Index rank = added.cols();
  if (rank == 0) {
    // The coordinate direction farthest from F'a.
    Index far = 0;
    E.col(0).cwiseAbs().minCoeff(&far);
    const Vector extra = off_span(Eigen::MatrixXd(Vector::Unit(k, far)));
    E.conservativeResize(k, 2);
    E.col(1) = extra.normalized();
    return E;
  }
  const Eigen::MatrixXd Q = off_span(added);
  Matrix all(k, 1 + rank);
  all << E, Q;
  return all;
}

}  // namespace

// Sums over the tokens of one component so far. X holds the parts of sum w xi and sum w x_i xi off
// the span.
struct SampledPrompt::State {
  double shift = 0;
  double s0 = 0;
  Vector s1;  // [p]
  Matrix s2;  // [p,p]
  double q0 = 0;
  Matrix X;  // [k, 1 + p], or [k,1] when n = 0
  double centre = 0;
  std::uint64_t next_block = 0;   // of the stream of coordinates
  std::uint64_t next_normal = 0;  // of the stream of residuals

  void rescale(double top) {
    if (top == shift) return;
    const double factor = s0 == 0 ? 0.0 : std::exp(shift - top);
    s0 *= factor;
    s1 *= factor;
    s2 *= factor;
    X *= factor;
    q0 *= factor * factor;
    shift = top;
  }
};

namespace {

// Sums of a batch of tokens with the covariance of the noise off the span:
// q [1+p,1+p] = sum w^2 (1,x)(1,x)'.
struct BatchSums {
  double shift = 0;
  double s0 = 0;
  Vector s1;
  Matrix s2;
  Matrix q;
};

BatchSums from_pair(const ScoreSums& sums, Index p) {
  BatchSums b{sums.shift, sums.s0, Vector(p), Matrix(p, p), Matrix::Zero(1 + p, 1 + p)};
  b.q(0, 0) = sums.q0;
  for (Index i = 0; i < p; ++i) {
    const auto at = static_cast<std::size_t>(i);
    b.s1(i) = sums.s1[at];
    b.q(0, 1 + i) = b.q(1 + i, 0) = sums.q1[at];
    for (Index j = 0; j < p; ++j) {
      b.s2(i, j) = sums.s2[static_cast<std::size_t>(i + j)];
      b.q(1 + i, 1 + j) = sums.q2[static_cast<std::size_t>(i + j)];
    }
  }
  return b;
}

// One or two coordinates: rows of tokens in SIMD lanes.
BatchSums small_batch(const Stream& stream, std::uint64_t& next_block, Index p, double tau,
                      double centre, std::int64_t count) {
  ScoreSums total;
  const auto blocks = [&](std::int64_t n) {
    return static_cast<std::uint64_t>(p == 1 ? (n + 1) / 2 : n);
  };
  const auto add = [&](std::size_t rows, std::int64_t n) {
    std::array<ScoreRow, kRowsAtOnce> row;
    std::array<ScoreSums, kRowsAtOnce> sums;
    for (std::size_t j = 0; j < rows; ++j) {
      row[j] = {next_block, tau, centre};
      next_block += blocks(n);
    }
    const std::span<const ScoreRow> in(row.data(), rows);
    const std::span<ScoreSums> out(sums.data(), rows);
    p == 1 ? single_sums(stream, in, n, out) : pair_sums(stream, in, n, out);
    for (const ScoreSums& one : out) total.merge(one);
  };
  std::int64_t left = count;
  while (left >= kRowTokens) {
    const std::int64_t rows = std::min<std::int64_t>(left / kRowTokens, kRowsAtOnce);
    add(static_cast<std::size_t>(rows), kRowTokens);
    left -= rows * kRowTokens;
  }
  // The remainder is cut into equal rows as well, so that a prompt of 100 tokens still fills the
  // lanes.
  constexpr std::int64_t kLanes = 8;
  if (left >= 4 * kLanes) {
    add(kLanes, left / kLanes);
    left %= kLanes;
  }
  if (left > 0) add(1, left);
  return from_pair(total, p);
}

// More coordinates: token by token in double, with a running maximum.
BatchSums large_batch(const Stream& stream, std::uint64_t& next_block, Index p, double tau,
                      double centre, std::int64_t count) {
  constexpr std::int64_t kTokens = 128;
  BatchSums b{-INFINITY, 0, Vector::Zero(p), Matrix::Zero(p, p), Matrix::Zero(1 + p, 1 + p)};
  Matrix g(kTokens, p);
  Vector w(kTokens);
  Matrix one_x(kTokens, 1 + p);
  for (std::int64_t done = 0; done < count;) {
    const Index n = std::min(kTokens, count - done);
    const auto normals = static_cast<std::uint64_t>(n * p);
    stream.fill_normal(2 * next_block, std::span<double>(g.data(), normals));
    next_block += (normals + 1) / 2;
    const double top = std::max(b.shift, tau * g.col(0).head(n).maxCoeff());
    const double factor = std::exp(b.shift - top);
    w.head(n) = (tau * g.col(0).head(n).array() - top).exp();
    one_x.col(0).setOnes();
    one_x.rightCols(p) = g;
    one_x.col(1).array() -= centre;
    const auto x = one_x.topRows(n);
    const Matrix wx = w.head(n).asDiagonal() * x;
    const Matrix moments = x.transpose() * wx;
    b.s0 = factor * b.s0 + moments(0, 0);
    b.s1 = factor * b.s1 + moments.col(0).tail(p);
    b.s2 = factor * b.s2 + moments.bottomRightCorner(p, p);
    b.q = factor * factor * b.q + wx.transpose() * wx;
    b.shift = top;
    done += n;
  }
  return b;
}

}  // namespace

SampledPrompt::SampledPrompt(const GaussianMixtureLaw& law, const VectorView& a,
                             const MatrixView& R)
    : a_(a), R_(R), weights_(law.weights) {
  const Index d = a.size();
  check_dimension("SampledPrompt", "rows of R", R.rows(), d);
  check_finite("SampledPrompt", "a", a);
  check_finite("SampledPrompt", "R", R);
  check_dimension("SampledPrompt", "weights", law.weights.size(),
                  static_cast<long>(law.components.size()));
  for (const GaussianLaw& part : law.components) {
    check_dimension("SampledPrompt", "mean", part.mean.size(), d);
    check_dimension("SampledPrompt", "covariance", part.cov.rows(), d);
    Component c;
    c.mean = part.mean;
    c.F = psd_factor("SampledPrompt", "covariance", part.cov);
    const Vector tilt = c.F.transpose() * a;
    const Matrix functionals = c.F.transpose() * R_;
    c.E = direction_basis(tilt, functionals);
    c.rho = c.E.transpose() * functionals;
    c.tau = tilt.norm();
    c.log_score = a.dot(part.mean);
    components_.push_back(std::move(c));
  }
}

SampledPrompt::SampledPrompt(const GaussianLaw& law, const VectorView& a, const MatrixView& R)
    : SampledPrompt(GaussianMixtureLaw{Vector::Ones(1), {law}}, a, R) {}

Index SampledPrompt::normals_per_token() const {
  Index most = 0;
  for (const Component& c : components_) most = std::max(most, c.E.cols());
  return most;
}

void SampledPrompt::add_tokens(const Component& c, std::int64_t count, double centre,
                               const Stream& stream, State& state) const {
  if (count == 0) return;
  const Index k = c.F.cols();
  const Index p = c.E.cols();
  if (p == 0) {  // a point mass: every token is the mean
    state.s0 += static_cast<double>(count);
    state.q0 += static_cast<double>(count);
    return;
  }
  const Stream coordinates = stream.split(0);
  const BatchSums b = p <= 2 ? small_batch(coordinates, state.next_block, p, c.tau, centre, count)
                             : large_batch(coordinates, state.next_block, p, c.tau, centre, count);
  const double top = state.s0 == 0 ? b.shift : std::max(state.shift, b.shift);
  state.rescale(top);
  const double factor = std::exp(b.shift - top);
  state.s0 += factor * b.s0;
  state.s1 += factor * b.s1;
  state.s2 += factor * b.s2;
  state.q0 += factor * factor * b.q(0, 0);
  if (p == k) return;
  const Index columns = state.X.cols();
  Matrix noise(k, columns);
  stream.split(1).fill_normal(
      state.next_normal, std::span<double>(noise.data(), static_cast<std::size_t>(noise.size())));
  state.next_normal += static_cast<std::uint64_t>(noise.size());
  const Eigensystem q = eigensystem(b.q.topLeftCorner(columns, columns));
  const Matrix root = q.vectors * q.values.cwiseMax(0.0).cwiseSqrt().asDiagonal();
  noise -= (c.E * (c.E.transpose() * noise)).eval();
  state.X += factor * noise * root.transpose();
}

SampledDraw SampledPrompt::read(std::span<const State> states) const {
  const Index n = R_.cols();
  const Index d = a_.size();
  double top = -INFINITY;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].s0 > 0) top = std::max(top, states[i].shift + components_[i].log_score);
  }
  // A reference point near the answer keeps second moments free of cancellation.
  Vector reference = Vector::Zero(d);
  double total = 0;
  std::vector<double> factor(states.size());
  std::vector<Vector> middle(states.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Component& c = components_[i];
    factor[i] = states[i].s0 > 0 ? std::exp(states[i].shift + c.log_score - top) : 0.0;
    middle[i] = c.mean;
    if (c.E.cols() > 0) middle[i] += states[i].centre * (c.F * c.E.col(0));
    reference += factor[i] * states[i].s0 * middle[i];
    total += factor[i] * states[i].s0;
  }
  reference /= total;
  Vector first = Vector::Zero(d);
  Matrix second = Matrix::Zero(d, n);
  double squares = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Component& c = components_[i];
    const State& s = states[i];
    if (s.s0 == 0) continue;
    const Index p = c.E.cols();
    const Vector delta = middle[i] - reference;
    const Vector delta_R = R_.transpose() * delta;
    Vector y = Vector::Zero(d);
    Vector yR = Vector::Zero(n);
    Matrix yyR = Matrix::Zero(d, n);
    if (p > 0) {
      y = c.F * (c.E * s.s1 + s.X.col(0));
      yR = c.rho.transpose() * s.s1;
      if (n > 0) yyR = c.F * (c.E * (s.s2 * c.rho) + s.X.rightCols(p) * c.rho);
    }
    first += factor[i] * (s.s0 * delta + y);
    second += factor[i] * ((s.s0 * delta + y) * delta_R.transpose() + delta * yR.transpose() + yyR);
    squares += factor[i] * factor[i] * s.q0;
  }
  first /= total;
  second /= total;
  const Vector first_R = R_.transpose() * first;
  return {reference + first, second - first * first_R.transpose(), squares / (total * total),
          top + std::log(total)};
}

std::vector<SampledDraw> SampledPrompt::draw(std::span<const std::int64_t> lengths,
                                             const Stream& stream) const {
  const std::size_t parts = components_.size();
  const CategoricalDraw component(weights_);
  std::vector<State> states(parts);
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < parts; ++i) {
    const Component& c = components_[i];
    const Index p = c.E.cols();
    State& s = states[i];
    s.s1 = Vector::Zero(p);
    s.s2 = Matrix::Zero(p, p);
    s.X = Matrix::Zero(c.F.cols(), R_.cols() > 0 ? 1 + p : 1);
    s.centre = score_centre(c.tau, lengths.empty() ? 1.0 : static_cast<double>(lengths.back()));
    streams.push_back(stream.split(i));
  }
  const Stream labels = stream.split(parts);
  std::vector<SampledDraw> draws;
  std::int64_t before = 0;
  std::vector<double> uniforms;
  for (const std::int64_t length : lengths) {
    if (length <= before) {
      throw_argument("SampledPrompt::draw", "length", std::to_string(length),
                     "integers >= 1 in increasing order");
    }
    std::vector<std::int64_t> counts(parts, 0);
    if (parts == 1) {
      counts[0] = length - before;
    } else {
      for (std::int64_t l = before; l < length; l += static_cast<std::int64_t>(uniforms.size())) {
        uniforms.resize(static_cast<std::size_t>(std::min<std::int64_t>(length - l, kRowTokens)));
        labels.fill_uniform(static_cast<std::uint64_t>(l), uniforms);
        for (const double u : uniforms) ++counts[static_cast<std::size_t>(component(u))];
      }
    }
    for (std::size_t i = 0; i < parts; ++i) {
      add_tokens(components_[i], counts[i], states[i].centre, streams[i], states[i]);
    }
    before = length;
    draws.push_back(read(states));
  }
  return draws;
}

// Tilting keeps F and moves the mean to m + F F'a; weights get e^{<a,m> + tau^2/2}.
SampledDraw SampledPrompt::limit() const {
  const Index n = R_.cols();
  double top = -INFINITY;
  const auto log_weight = [&](std::size_t i) {
    const Component& c = components_[i];
    return std::log(weights_(static_cast<Index>(i))) + c.log_score + 0.5 * c.tau * c.tau;
  };
  for (std::size_t i = 0; i < components_.size(); ++i) top = std::max(top, log_weight(i));
  double total = 0;
  SampledDraw limit{Vector::Zero(a_.size()), Matrix::Zero(a_.size(), n), 0};
  std::vector<Vector> means;
  std::vector<double> shares;
  for (std::size_t i = 0; i < components_.size(); ++i) {
    const Component& c = components_[i];
    means.push_back(c.mean + c.F * (c.F.transpose() * a_));
    shares.push_back(std::exp(log_weight(i) - top));
    total += shares[i];
    limit.zbar += shares[i] * means[i];
  }
  limit.zbar /= total;
  for (std::size_t i = 0; i < components_.size(); ++i) {
    const Component& c = components_[i];
    const Vector delta = means[i] - limit.zbar;
    const Vector delta_R = R_.transpose() * delta;
    limit.CR += shares[i] / total * (c.F * (c.F.transpose() * R_) + delta * delta_R.transpose());
  }
  return limit;
}

}  // namespace esscher
