#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/detail/stencil.h"
#include "esscher/measure/score_law.h"

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
  out.far = law.far;
  out.s.conservativeResize(n);
  out.p.conservativeResize(n);
  out.first.conservativeResize(n, law.width());
  out.second.conservativeResize(n);
  return out;
}

// Rows are the lattice points from `start` on; columns are p, second and first.
struct Lattice {
  long start = 0;
  Matrix rows;  // [m, 2 + dv]
};

long nearest(double s) { return std::lround(s / kLatticeStep); }

Index lattice_size(const ScoreLaw& law) {
  return nearest(law.s[law.size() - 1]) - nearest(law.s[0]) + kStencil;
}

Lattice on_lattice(const ScoreLaw& law) {
  Lattice out{nearest(law.s[0]) - kStencil / 2, Matrix::Zero(lattice_size(law), 2 + law.width())};
  for (Index i = 0; i < law.size(); ++i) {
    const long middle = nearest(law.s[i]);
    const Stencil w = stencil(law.s[i] / kLatticeStep - static_cast<double>(middle));
    for (int j = 0; j < kStencil; ++j) {
      if (w[j] == 0) continue;
      auto row = out.rows.row(middle - kStencil / 2 - out.start + j);
      row[0] += w[j] * law.p[i];
      row[1] += w[j] * law.second[i];
      row.tail(law.width()) += w[j] * law.first.row(i);
    }
  }
  return out;
}

ScoreLaw nodes_of(const Lattice& lattice) {
  const Index n = lattice.rows.rows();
  ScoreLaw out{Vector(n), lattice.rows.col(0), lattice.rows.rightCols(lattice.rows.cols() - 2),
               lattice.rows.col(1)};
  for (Index i = 0; i < n; ++i) {
    out.s[i] = kLatticeStep * static_cast<double>(lattice.start + i);
  }
  return out;
}

// (p, second, first) of a sum: p q, p q2 + p2 q + 2 p1.q1, p q1 + p1 q.
void add_product(Eigen::Ref<Eigen::RowVectorXd> out, const Eigen::Ref<const Eigen::RowVectorXd>& a,
                 const Eigen::Ref<const Eigen::RowVectorXd>& b) {
  const Index dv = out.size() - 2;
  out[0] += a[0] * b[0];
  out[1] += a[0] * b[1] + a[1] * b[0] + 2 * a.tail(dv).dot(b.tail(dv));
  out.tail(dv) += a[0] * b.tail(dv) + b[0] * a.tail(dv);
}

Lattice convolved(const Lattice& a, const Lattice& b) {
  Lattice out{a.start + b.start, Matrix::Zero(a.rows.rows() + b.rows.rows() - 1, a.rows.cols())};
  for (Index i = 0; i < a.rows.rows(); ++i) {
    for (Index j = 0; j < b.rows.rows(); ++j) {
      add_product(out.rows.row(i + j), a.rows.row(i), b.rows.row(j));
    }
  }
  return out;
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

// The far scores of a mixture; a part without any has none.
std::optional<FarScores> mixed_far(const Vector& weights, const std::vector<ScoreLaw>& parts) {
  Index n = 0;
  for (const ScoreLaw& part : parts) n += part.far ? part.far->s.size() : 0;
  if (n == 0) return std::nullopt;
  FarScores out{.from = std::numeric_limits<double>::infinity(),
                .reach = std::numeric_limits<double>::infinity(),
                .s = Vector(n),
                .p = Vector(n),
                .first = Matrix(n, parts.front().width()),
                .second = Vector(n)};
  std::vector<std::pair<double, std::function<double(double)>>> above;
  Index at = 0;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (!parts[k].far) continue;
    const FarScores& far = *parts[k].far;
    const double w = weights[static_cast<Index>(k)];
    const Index m = far.s.size();
    out.s.segment(at, m) = far.s;
    out.p.segment(at, m) = w * far.p;
    out.first.middleRows(at, m) = w * far.first;
    out.second.segment(at, m) = w * far.second;
    out.mass += w * far.mass;
    out.density += w * far.density;
    out.from = std::min(out.from, far.from);
    out.reach = std::min(out.reach, far.reach);
    above.emplace_back(w, far.above);
    at += m;
  }
  out.above = [above](double x) {
    double sum = 0;
    for (const auto& [w, one] : above) sum += w * one(x);
    return sum;
  };
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
  if (!law.far) return law;
  law.far->from += shift;
  law.far->s.array() += shift;
  law.far->above = [above = law.far->above, shift](double x) { return above(x - shift); };
  return law;
}

ScoreLaw independent_sum(const std::vector<ScoreLaw>& parts) {
  if (std::any_of(parts.begin(), parts.end(), [](const ScoreLaw& law) { return law.far; })) {
    throw CapabilityError(
        "exact: sums and products with student tokens have no score law; the direct engine can "
        "serve them");
  }
  ScoreLaw law = parts.front();
  std::size_t k = 1;
  for (; k < parts.size() && law.size() * parts[k].size() <= 4 * kMaxNodes; ++k) {
    law = all_sums(law, parts[k]);
    if (law.size() > kMaxNodes) {
      ++k;
      break;
    }
  }
  if (k == parts.size()) return compacted(std::move(law));
  Lattice total = on_lattice(law);
  for (; k < parts.size(); ++k) total = convolved(total, on_lattice(parts[k]));
  return nodes_of(total);
}

ScoreLaw mixed(const Vector& weights, const std::vector<ScoreLaw>& parts) {
  Index n = 0;
  for (const ScoreLaw& part : parts) n += part.size();
  ScoreLaw out{Vector(n), Vector(n), Matrix(n, parts.front().width()), Vector(n)};
  out.far = mixed_far(weights, parts);
  const double near = 1 - (out.far ? out.far->mass : 0);
  Index at = 0;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const double own = 1 - (parts[k].far ? parts[k].far->mass : 0);
    const double w = weights[static_cast<Index>(k)] * (own / near);
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
  out.far = std::move(law.far);
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
