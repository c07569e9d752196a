#include "esscher/task/exact_labels.h"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "esscher/base/eigensystem.h"
#include "esscher/measure/score_law.h"
#include "esscher/task/index_posterior.h"

namespace esscher {
namespace {

constexpr double kReach = 6.5;       // deviations of w along a direction that are looked at
constexpr double kDependent = 1e-7;  // what is left of a token in the span of others, relative
constexpr double kDiffers = 1e-4;    // values that differ by many of these are not one
constexpr double kMostChoices = 1 << 15;

// Orthonormal coordinates of the span of tokens.
struct Span {
  std::vector<Vector> q;

  // Entries of x along q, and what is left of it.
  [[nodiscard]] std::pair<Vector, Vector> split(const Vector& x) const {
    Vector along = Vector::Zero(static_cast<Index>(q.size())), rest = x;
    for (int twice = 0; twice < 2; ++twice) {
      for (std::size_t j = 0; j < q.size(); ++j) {
        const double own = q[j].dot(rest);
        along[static_cast<Index>(j)] += own;
        rest -= own * q[j];
      }
    }
    return {along, rest};
  }
};

// A token in these coordinates: x = along' q, and length times the next q unless it depends on them.
struct Row {
  Vector along;
  double length = 0;  // 0: dependent
};

Row add_row(Span& span, const Vector& x) {
  auto [along, rest] = span.split(x);
  const double length = rest.norm();
  if (!(length > kDependent * x.norm())) return {along, 0};
  span.q.emplace_back(rest / length);
  return {along, length};
}

bool is(const Link& link, LinkName other) { return link.name() == name(other); }

bool is_one_to_one(const Link& link) {
  return is(link, LinkName::tanh) || is(link, LinkName::erf) || is(link, LinkName::probit);
}

double inverse(const Link& link, double y) {
  constexpr double kLast = 1 - 0x1p-53;
  if (is(link, LinkName::tanh)) return std::atanh(std::clamp(y, -kLast, kLast));
  if (is(link, LinkName::erf)) return boost::math::erf_inv(std::clamp(y, -kLast, kLast));
  return -std::numbers::sqrt2 * boost::math::erfc_inv(2 * std::clamp(y, 0x1p-1000, kLast));
}

// All h in [low, high] with g(h) = y; of a link that is one to one the only one, wherever it is.
std::vector<double> values_of(const Link& link, double y, double low, double high) {
  if (is_one_to_one(link)) return {inverse(link, y)};
  std::vector<double> out;
  if (is(link, LinkName::sin)) {
    constexpr double kTurn = 2 * std::numbers::pi;
    const double first = std::asin(std::clamp(y, -1.0, 1.0));
    for (const double at : {first, std::numbers::pi - first}) {
      for (double h = at + kTurn * std::ceil((low - at) / kTurn); h <= high; h += kTurn) {
        out.push_back(h);
      }
    }
    return out;
  }
  const Vector& c = link.coefficients();
  if (c[2] == 0) return {(y - c[0]) / c[1]};
  const double root = std::sqrt(std::max(c[1] * c[1] - 4 * c[2] * (c[0] - y), 0.0));
  for (const double sign : {1.0, -1.0}) out.push_back((-c[1] + sign * root) / (2 * c[2]));
  std::erase_if(out, [&](double h) { return h < low || h > high; });
  return out;
}

double square(double x) { return x * x; }

// E g(m + deviation v), v ~ N(0,1).
double smoothed(const Link& link, double m, double deviation) {
  const double variance = square(deviation);
  if (is(link, LinkName::sin)) return std::exp(-variance / 2) * std::sin(m);
  if (is(link, LinkName::erf)) return std::erf(m / std::sqrt(1 + 2 * variance));
  if (is(link, LinkName::probit)) return link(m / std::sqrt(1 + variance));
  if (is(link, LinkName::polynomial)) return link(m) + link.coefficients()[2] * variance;
  return line_mean([](double t) { return -t * t / 2; },
                   [&](double t) { return link(m + deviation * t); }, -8.5, 8.5,
                   [](double t) { return -t; });
}

// E g(m + radius u), u one coordinate of a uniform point on the unit sphere of R^dim.
double smoothed_on_sphere(const Link& link, double m, double radius, Index dim) {
  if (dim == 1) return (link(m + radius) + link(m - radius)) / 2;
  constexpr double kQuarter = std::numbers::pi / 2, kPanels = 8;
  const PanelRule rule = panel_rule(-kQuarter, kQuarter, 2 * kQuarter / kPanels);
  double mass = 0, sum = 0;
  for (Index i = 0; i < rule.x.size(); ++i) {
    const double own = rule.w[i] * std::pow(std::cos(rule.x[i]), static_cast<double>(dim - 2));
    mass += own;
    sum += own * link(m + radius * std::sin(rule.x[i]));
  }
  return sum / mass;
}

// All choices of values, token by token.
class Choices {
 public:
  Choices(const SingleIndexTask& task, const Matrix& X, const Vector& y, const Vector& x)
      : task_(task), y_(y) {
    for (Index i = 0; i < X.rows(); ++i) rows_.push_back(add_row(span_, X.row(i).transpose()));
    auto [along, rest] = span_.split(x);
    const double left = rest.norm();
    along_ = std::move(along);
    left_ = left > kDependent * x.norm() ? left : 0;
    c_ = Vector::Zero(along_.size());
    choose(0, 0, 0, 0);
  }
  [[nodiscard]] double mean() const { return sum_ / mass_; }

 private:
  // The first `i` tokens have given `rank` coordinates of squared length `norm2`.
  void choose(std::size_t i, Index rank, double norm2, double log_weight) {
    if (i == rows_.size()) return weigh(norm2, log_weight);
    const Row& row = rows_[i];
    const bool dependent = row.length == 0;
    if (dependent && is_one_to_one(task_.link)) return choose(i + 1, rank, norm2, log_weight);
    const double m = row.along.dot(c_.head(row.along.size()));
    const double reach = dependent ? 1 : row.length * (coordinate_reach(norm2) + kDependent);
    for (const double h : values_of(task_.link, y_[static_cast<Index>(i)], m - reach, m + reach)) {
      if (dependent) {
        choose(i + 1, rank, norm2, log_weight - square((h - m) / kDiffers));
        continue;
      }
      c_[rank] = (h - m) / row.length;
      choose(i + 1, rank + 1, norm2 + square(c_[rank]), log_weight);
    }
  }
  [[nodiscard]] double coordinate_reach(double norm2) const {
    if (task_.index_law == IndexLaw::gaussian) return kReach * std::sqrt(task_.task_variance);
    return std::sqrt(std::max(task_.task_variance - norm2, 0.0));
  }
  // Of the directions that no token has.
  [[nodiscard]] Index free() const { return task_.cov.rows() - c_.size(); }

  void weigh(double norm2, double log_weight) {
    const double s2 = task_.task_variance, m = along_.dot(c_);
    double prediction = 0;
    if (task_.index_law == IndexLaw::gaussian) {
      log_weight -= norm2 / (2 * s2);
      prediction = left_ == 0 ? task_.link(m) : smoothed(task_.link, m, std::sqrt(s2) * left_);
    } else {
      const double rest = std::max(s2 - norm2, kDependent * kDependent * s2);
      log_weight += free() == 0 ? -square((s2 - norm2) / (kDiffers * s2))
                                : 0.5 * static_cast<double>(free() - 2) * std::log(rest);
      prediction = left_ == 0 ? task_.link(m)
                              : smoothed_on_sphere(task_.link, m, std::sqrt(rest) * left_, free());
    }
    if (log_weight > top_) {
      const double scale = std::exp(top_ - log_weight);
      mass_ *= scale;
      sum_ *= scale;
      top_ = log_weight;
    }
    mass_ += std::exp(log_weight - top_);
    sum_ += std::exp(log_weight - top_) * prediction;
  }

  const SingleIndexTask& task_;
  const Vector& y_;
  Span span_;
  std::vector<Row> rows_;
  Vector along_;     // of the query
  double left_ = 0;  // of it beside the span
  Vector c_;
  double top_ = -HUGE_VAL, mass_ = 0, sum_ = 0;
};

// Choices of sines are the turns that a coordinate of w reaches, and d tokens N(0, Sigma) of d
// coordinates span det(Sigma)^1/2 (d!)^1/2 on average.
double expected_choices(const SingleIndexTask& task) {
  const auto d = static_cast<double>(task.cov.rows());
  if (is_one_to_one(task.link)) return 1;
  if (is(task.link, LinkName::polynomial)) return std::exp2(d);
  double log = 0.5 * std::lgamma(d + 1);
  for (const double variance : eigensystem(task.cov).values) {
    const double reach = 2 * kReach * std::sqrt(task.task_variance * variance);
    log += std::log(std::max(reach / std::numbers::pi, 1.0));
  }
  return std::exp(log);
}

// The least n with P(fewer than d heads in n throws of a coin) < 1e-16.
Index throws_for(Index d) {
  constexpr double kNever = 1e-16;
  for (Index n = d;; ++n) {
    double sum = 0;
    for (Index k = 0; k < d; ++k) {
      const auto N = static_cast<double>(n), K = static_cast<double>(k);
      sum += std::exp(std::lgamma(N + 1) - std::lgamma(K + 1) - std::lgamma(N - K + 1) -
                      N * std::numbers::ln2);
    }
    if (sum < kNever) return n;
  }
}

// w of normals, given the labels of relu that are not 0.
struct ReluIndex {
  SingleIndexTask task;
  Span span;
  Vector fixed;  // sum c_j q_j
  Matrix zeros;  // tokens with label 0 [n,d]

  ReluIndex(const SingleIndexTask& of, const Matrix& X, const Vector& y) : task(of) {
    const Index d = X.cols();
    fixed = Vector::Zero(d);
    std::vector<Index> zero;
    for (Index i = 0; i < X.rows(); ++i) {
      if (!(y[i] > 0)) {
        zero.push_back(i);
        continue;
      }
      if (static_cast<Index>(span.q.size()) == d) continue;
      const double before = X.row(i).dot(fixed);
      const Row row = add_row(span, X.row(i).transpose());
      if (row.length > 0) fixed += (y[i] - before) / row.length * span.q.back();
    }
    zeros = Matrix(static_cast<Index>(zero.size()), d);
    for (Index i = 0; i < zeros.rows(); ++i)
      zeros.row(i) = X.row(zero[static_cast<std::size_t>(i)]);
  }
  [[nodiscard]] bool is_known() const {
    return static_cast<Index>(span.q.size()) == task.cov.rows();
  }
  [[nodiscard]] Vector at(const Vector& normals) const {
    const Vector rest = span.split(normals).second;
    const double left = task.task_variance - fixed.squaredNorm();
    const double scale = task.index_law == IndexLaw::gaussian
                             ? std::sqrt(task.task_variance)
                             : std::sqrt(std::max(left, 0.0)) / rest.norm();
    return is_known() ? fixed : Vector(fixed + scale * rest);
  }
};

}  // namespace

std::optional<PosteriorBy> exact_labels_by(const SingleIndexTask& task) {
  const Link& link = task.link;
  const bool constant = link.coefficients().size() > 0 && link.coefficients().tail(2).isZero(0);
  if (link.name() == "custom" || is(link, LinkName::sign) || constant) return std::nullopt;
  if (is(link, LinkName::relu)) return PosteriorBy::chains;
  if (expected_choices(task) > kMostChoices) return std::nullopt;
  const bool closed = task.index_law == IndexLaw::gaussian && !is(link, LinkName::tanh);
  return closed ? PosteriorBy::formula : PosteriorBy::quadrature;
}

double exact_label_mean(const SingleIndexTask& task, const Matrix& X, const Vector& y,
                        const Vector& x) {
  return Choices(task, X, y, x).mean();
}

LawEvidence exact_relu_evidence(const SingleIndexTask& task, const Matrix& X, const Vector& y,
                                const Vector& x) {
  const ReluIndex w(task, X, y);
  return {.log_density =
              [w](const Vector& normals) {
                if (w.is_known()) return 0.0;
                const Vector h = w.zeros * w.at(normals);
                return -kMismatch * static_cast<double>((h.array() > 0).count());
              },
          .mean =
              [w, x](const Vector& normals) {
                return Vector::Constant(1, w.task.link(w.at(normals).dot(x))).eval();
              }};
}

Index labels_that_tell(const SingleIndexTask& task) {
  const Index d = task.cov.rows();
  if (is_one_to_one(task.link)) return d;
  if (is(task.link, LinkName::sin) || is(task.link, LinkName::polynomial)) return d + 1;
  return is(task.link, LinkName::relu) ? throws_for(d) : 0;
}

}  // namespace esscher
