#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <span>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/detail/stencil.h"
#include "esscher/measure/score_law.h"
#include "esscher/simd/convolve.h"

namespace esscher {
namespace {

// Nodes nearer than this, relative to the largest score, are one node.
constexpr double kSameScore = 1e-15;

// Sorts nodes and joins those of one score, which Rademacher laws and repeated tokens have.
ScoreLaw sorted(const ScoreLaw& law) {
  std::vector<Index> order(static_cast<std::size_t>(law.size()));
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](Index i, Index j) { return law.s[i] < law.s[j]; });
  const double same = kSameScore * law.s.cwiseAbs().maxCoeff();
  ScoreLaw out{Vector(law.size()), Vector(law.size()), Matrix(law.size(), law.width()),
               Vector(law.size())};
  Index n = 0;
  for (const Index i : order) {
    if (n > 0 && law.s[i] - out.s[n - 1] <= same) {
      out.p[n - 1] += law.p[i];
      out.first.row(n - 1) += law.first.row(i);
      out.second[n - 1] += law.second[i];
      continue;
    }
    out.s[n] = law.s[i];
    out.p[n] = law.p[i];
    out.first.row(n) = law.first.row(i);
    out.second[n++] = law.second[i];
  }
  out.tails = law.tails;
  out.s.conservativeResize(n);
  out.p.conservativeResize(n);
  out.first.conservativeResize(n, law.width());
  out.second.conservativeResize(n);
  return out;
}

// Columns are the lattice points from `start` on; rows are p, second and first.
struct Lattice {
  long start = 0;
  Matrix rows;  // [2 + dv, m]

  [[nodiscard]] Index size() const { return rows.cols(); }
  [[nodiscard]] std::span<const double> row(Index i) const {
    return {rows.data() + i * size(), static_cast<std::size_t>(size())};
  }
};

long nearest(double s) { return std::lround(s / kLatticeStep); }

Index lattice_size(const ScoreLaw& law) {
  return nearest(law.s[law.size() - 1]) - nearest(law.s[0]) + kStencil;
}

Lattice on_lattice(const ScoreLaw& law) {
  Lattice out{nearest(law.s[0]) - kStencil / 2, Matrix::Zero(2 + law.width(), lattice_size(law))};
  for (Index i = 0; i < law.size(); ++i) {
    const long middle = nearest(law.s[i]);
    const Stencil w = stencil(law.s[i] / kLatticeStep - static_cast<double>(middle));
    const Index from = middle - kStencil / 2 - out.start;
    const auto add = [&](Index row, double x) {
      out.rows.row(row).segment<kStencil>(from) += x * w.transpose();
    };
    add(0, law.p[i]);
    add(1, law.second[i]);
    for (Index j = 0; j < law.width(); ++j) add(2 + j, law.first(i, j));
  }
  return out;
}

ScoreLaw nodes_of(const Lattice& lattice) {
  const Index n = lattice.size();
  ScoreLaw out{Vector(n), lattice.rows.row(0),
               lattice.rows.bottomRows(lattice.rows.rows() - 2).transpose(), lattice.rows.row(1)};
  for (Index i = 0; i < n; ++i) {
    out.s[i] = kLatticeStep * static_cast<double>(lattice.start + i);
  }
  return out;
}

// Ends of a sum are left out where they hold less than this share of every row, of |row| at the
// lower end and of e^s |row| at the upper one, as panels of one coordinate are cut at e^-38.
constexpr double kNegligible = 1e-18;
// Beyond this reach e^s leaves the range of doubles, and nothing is left out.
constexpr double kTrimmedReach = 1200;

Lattice trimmed(Lattice lattice) {
  const Index n = lattice.size();
  if (kLatticeStep * static_cast<double>(n) > kTrimmedReach) return lattice;
  Vector growth(n);  // e^s, s from the middle
  for (Index i = 0; i < n; ++i) {
    growth[i] = std::exp(kLatticeStep * (static_cast<double>(i) - 0.5 * static_cast<double>(n)));
  }
  Index from = n - 1, to = 1;
  for (Index r = 0; r < lattice.rows.rows(); ++r) {
    const Vector size = lattice.rows.row(r).cwiseAbs();
    const double low = kNegligible * size.sum(), high = kNegligible * size.dot(growth);
    Index i = 0;
    for (double sum = size[0]; i + 1 < n && sum <= low; sum += size[i]) ++i;
    from = std::min(from, i);
    i = n;
    for (double sum = size[n - 1] * growth[n - 1]; i > 1 && sum <= high;
         sum += size[i - 1] * growth[i - 1]) {
      --i;
    }
    to = std::max(to, i);
  }
  if (from >= to) return lattice;
  lattice.rows = lattice.rows.middleCols(from, to - from).eval();
  lattice.start += from;
  return lattice;
}

// Rows a convolved with the one row b.
Matrix convolved(const Matrix& a, std::span<const double> b) {
  const auto width = static_cast<std::size_t>(a.cols());
  Matrix out = Matrix::Zero(a.rows(), a.cols() + static_cast<Index>(b.size()) - 1);
  std::vector<std::span<const double>> from;
  std::vector<std::span<double>> to;
  for (Index r = 0; r < a.rows(); ++r) {
    from.emplace_back(a.data() + r * a.cols(), width);
    to.emplace_back(out.data() + r * out.cols(), static_cast<std::size_t>(out.cols()));
  }
  simd::convolve_add(from, b, to);
  return out;
}

// (p, second, first) of a sum: p q, p q2 + p2 q + 2 p1.q1, p q1 + p1 q.
Lattice convolved(const Lattice& a, const Lattice& b) {
  Lattice out{a.start + b.start, convolved(a.rows, b.row(0))};
  out.rows.bottomRows(out.rows.rows() - 1) +=
      convolved(b.rows.bottomRows(b.rows.rows() - 1), a.row(0));
  for (Index j = 2; j < a.rows.rows(); ++j) {
    out.rows.row(1) += 2 * convolved(a.rows.row(j), b.row(j));
  }
  return trimmed(std::move(out));
}

// The same where b is read along v: its first is a multiple of v, so that p1.q1 is one product.
Lattice convolved(const Lattice& a, const Lattice& b, const Vector& v) {
  Lattice out{a.start + b.start, convolved(a.rows, b.row(0))};
  const Matrix own = convolved(b.rows.bottomRows(2), a.row(0));
  const Matrix read = v.transpose() * a.rows.bottomRows(v.size());
  out.rows.row(1) += v.squaredNorm() * own.row(0) + 2 * convolved(read, b.row(2));
  out.rows.bottomRows(v.size()) += v * own.row(1);
  return trimmed(std::move(out));
}

// The law that is read along v, of one whose values are numbers.
ScoreLaw along(const ScoreLaw& law, const Vector& v) {
  return {law.s, law.p, law.first * v.transpose(), v.squaredNorm() * law.second};
}

ScoreLaw all_sums(const ScoreLaw& a, const ScoreLaw& b) {
  const Index n = a.size() * b.size();
  ScoreLaw out{Vector(n), Vector(n), Matrix(n, a.width()), Vector(n)};
  Index at = 0;
  for (Index i = 0; i < a.size(); ++i) {
    for (Index j = 0; j < b.size(); ++j, ++at) {
      out.s[at] = a.s[i] + b.s[j];
      out.p[at] = a.p[i] * b.p[j];
      out.first.row(at) = a.p[i] * b.first.row(j) + b.p[j] * a.first.row(i);
      out.second[at] =
          a.p[i] * b.second[j] + a.second[i] * b.p[j] + 2 * a.first.row(i).dot(b.first.row(j));
    }
  }
  return sorted(out);
}

// The law `total` plus parts k .. count - 1: all sums of nodes while these are few, then on the
// lattice.
template <class Part, class Convolve>
ScoreLaw sum_of(ScoreLaw total, std::size_t k, std::size_t count, const Part& part,
                const Convolve& convolve) {
  for (bool few = true; few && k < count;) {
    const ScoreLaw& one = part(k);
    if (total.size() * one.size() > 4 * kMaxNodes) break;
    total = all_sums(total, one);
    few = total.size() <= kMaxNodes;
    ++k;
  }
  if (k == count) return compacted(std::move(total));
  Lattice lattice = on_lattice(total);
  for (; k < count; ++k) lattice = convolve(lattice, k);
  return nodes_of(lattice);
}

// The tails of all parts, which begin where no part has nodes of weight.
std::optional<LongTails> mixed_tails(const Vector& weights, const std::vector<ScoreLaw>& parts) {
  std::optional<LongTails> out = tail_span(parts);
  if (!out) return out;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (!parts[k].tails) continue;
    for (LongTail tail : parts[k].tails->parts) {
      tail.weight *= weights[static_cast<Index>(k)];
      out->parts.push_back(std::move(tail));
    }
  }
  return out;
}

}  // namespace

ScoreLaw score_nodes(const Vector& s, const Vector& p, const Matrix& mean, const Vector& variance,
                     const Vector& c) {
  ScoreLaw out{s, p, mean.rowwise() - c.transpose(), Vector(s.size())};
  out.second = p.cwiseProduct(variance + out.first.rowwise().squaredNorm());
  out.first.array().colwise() *= p.array();
  return sorted(out);
}

ScoreLaw constant_score(double s, const Vector& mean, double variance, const Vector& c) {
  return score_nodes(Vector::Constant(1, s), Vector::Ones(1), mean.transpose(),
                     Vector::Constant(1, variance), c);
}

ScoreLaw shifted(ScoreLaw law, double shift) {
  law.s.array() += shift;
  if (!law.tails) return law;
  law.tails->low += shift;
  law.tails->high += shift;
  for (LongTail& tail : law.tails->parts) tail.shift(shift);
  return law;
}

ScoreLaw independent_sum(const std::vector<ScoreLaw>& parts) {
  if (std::any_of(parts.begin(), parts.end(),
                  [](const ScoreLaw& law) { return law.tails.has_value(); })) {
    throw CapabilityError(
        "exact: sums and products with student tokens have no score law; the direct engine can "
        "serve them");
  }
  const auto part = [&](std::size_t k) -> const ScoreLaw& { return parts[k]; };
  return sum_of(parts.front(), 1, parts.size(), part, [&](const Lattice& total, std::size_t k) {
    return convolved(total, on_lattice(parts[k]));
  });
}

ScoreLaw independent_sum(const ScoreLaw& start, const std::vector<ScoreLaw>& parts,
                         const Matrix& directions) {
  check_dimension("independent_sum", "directions (columns)", directions.cols(),
                  static_cast<Index>(parts.size()));
  check_dimension("independent_sum", "directions (rows)", directions.rows(), start.width());
  const auto v = [&](std::size_t k) { return Vector(directions.col(static_cast<Index>(k))); };
  return sum_of(
      start, 0, parts.size(), [&](std::size_t k) { return along(parts[k], v(k)); },
      [&](const Lattice& total, std::size_t k) {
        return convolved(total, on_lattice(parts[k]), v(k));
      });
}

// A node of the score s has weight for x between s - 7 and s + 45, where y = e^{s - x}.
std::optional<LongTails> tail_span(const std::vector<ScoreLaw>& parts) {
  constexpr double kAbove = 45, kBelow = 7;
  if (std::none_of(parts.begin(), parts.end(),
                   [](const ScoreLaw& law) { return law.tails.has_value(); })) {
    return std::nullopt;
  }
  LongTails out{.low = std::numeric_limits<double>::infinity(),
                .high = -std::numeric_limits<double>::infinity()};
  for (const ScoreLaw& part : parts) {
    const bool own = part.tails.has_value();
    out.low = std::min(out.low, own ? part.tails->low : part.s[0] - kBelow);
    out.high = std::max(out.high, own ? part.tails->high : part.s[part.size() - 1] + kAbove);
  }
  return out;
}

ScoreLaw mixed(const Vector& weights, const std::vector<ScoreLaw>& parts) {
  Index n = 0;
  for (const ScoreLaw& part : parts) n += part.size();
  ScoreLaw out{Vector(n), Vector(n), Matrix(n, parts.front().width()), Vector(n)};
  out.tails = mixed_tails(weights, parts);
  Index at = 0;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const double w = weights[static_cast<Index>(k)];
    const Index m = parts[k].size();
    out.s.segment(at, m) = parts[k].s;
    out.p.segment(at, m) = w * parts[k].p;
    out.first.middleRows(at, m) = w * parts[k].first;
    out.second.segment(at, m) = w * parts[k].second;
    at += m;
  }
  return compacted(sorted(out));
}

ScoreLaw compacted(ScoreLaw law) {
  if (law.size() <= kMaxNodes || law.size() <= lattice_size(law)) return law;
  ScoreLaw out = nodes_of(on_lattice(law));
  out.tails = std::move(law.tails);
  return out;
}

PanelRule panel_rule(double from, double to, double panel) {
  using Gauss = boost::math::quadrature::gauss<double, 20>;
  const auto& x = Gauss::abscissa();
  const auto& w = Gauss::weights();
  const double count = std::max(1.0, std::ceil((to - from) / panel));
  const auto n = static_cast<Index>(count);
  const double half = 0.5 * (to - from) / count;
  PanelRule rule{Vector(20 * n), Vector(20 * n)};
  for (Index i = 0; i < n; ++i) {
    const double middle = from + half * static_cast<double>(2 * i + 1);
    for (Index j = 0; j < 10; ++j) {
      const auto k = static_cast<std::size_t>(j);
      rule.x[20 * i + 9 - j] = middle - half * x[k];
      rule.x[20 * i + 10 + j] = middle + half * x[k];
      rule.w[20 * i + 9 - j] = rule.w[20 * i + 10 + j] = half * w[k];
    }
  }
  return rule;
}

// e^{2s} moves the mean to 2 tau. The step is that of universal/token_moments.h.
PanelRule normal_rule(double tau) {
  constexpr double kReach = 8.8, kStep = 0.6, kScoreStep = 1.0 / 6;
  const double step = tau * kStep > kScoreStep ? kScoreStep / tau : kStep;
  const auto left = static_cast<Index>(std::ceil(kReach / step));
  const auto right = static_cast<Index>(std::ceil((kReach + 2 * tau) / step));
  PanelRule rule{Vector(left + right + 1), Vector(left + right + 1)};
  for (Index i = 0; i < rule.x.size(); ++i) {
    const double g = step * static_cast<double>(i - left);
    rule.x[i] = g;
    rule.w[i] = step * std::exp(-0.5 * g * g) / std::sqrt(2 * std::numbers::pi);
  }
  return rule;
}

}  // namespace esscher
