#include "esscher/measure/score_law.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/categorical.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/detail/score_student.h"
#include "esscher/measure/dirac.h"
#include "esscher/measure/elliptical.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/link_pair.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/product.h"
#include "esscher/measure/single_index.h"
#include "esscher/measure/sphere.h"
#include "esscher/measure/sum.h"

namespace esscher {
namespace {

// Scores that reach further take more than about 10^4 nodes.
constexpr double kMaxReach = 1000;
constexpr double kMaxNodeTau = 40;

// The measures that have a score law. A measure with a member score_law(reading) needs this line
// only. visit(mu) is called with the concrete type; false if it is none of these.
template <class... M>
struct Types {};
using Served =
    Types<Gaussian, Mixture, Affine, Product, Sum, Empirical, Categorical, Sphere, Ball, Rademacher,
          Uniform, Laplace, Dirac, Elliptical, Student, LinkPair, SingleIndex>;

template <class Visit, class... M>
bool visit_one_of(Types<M...>, const AnyMeasure& mu, const Visit& visit) {
  const auto try_one = [&](const auto* concrete) {
    if (concrete != nullptr) visit(*concrete);
    return concrete != nullptr;
  };
  return (try_one(mu.as<M>()) || ...);
}

[[noreturn]] void refuse_reach(const std::string& name, double reach, double limit) {
  throw CapabilityError("exact: scores of " + name + " tokens reach " + to_text(reach) +
                        " here, their nodes reach " + to_text(limit) +
                        "; the direct engine can serve them");
}

void check_reach(const std::string& name, double reach, double limit = kMaxReach) {
  if (!(reach <= limit)) refuse_reach(name, reach, limit);
}

// Every token has the score 0.
ScoreLaw untilted(const AnyMeasure& mu, const ScoreReading& r) {
  const Vector mean = mu.mean();
  const Matrix cov = mu.second_moment() - mean * mean.transpose();
  return constant_score(0, r.V * mean, std::max(0.0, (r.V * cov).cwiseProduct(r.V).sum()), r.c);
}

template <class M>
requires requires(const M& mu, const ScoreReading& r) { mu.score_law(r); }
ScoreLaw nodes(const M& mu, const ScoreReading& r) { return mu.score_law(r); }

ScoreLaw nodes(const Gaussian& mu, const ScoreReading& r) {
  const Vector Ga = mu.cov() * r.a;
  const double tau = std::sqrt(std::max(0.0, r.a.dot(Ga)));
  check_reach("gaussian", tau, kMaxNodeTau);
  const Matrix VG = r.V * mu.cov();
  const double trace = VG.cwiseProduct(r.V).sum();
  if (tau == 0) return constant_score(r.a.dot(mu.mean()), r.V * mu.mean(), trace, r.c);
  const Vector Vb = r.V * Ga / tau;
  const PanelRule g = normal_rule(tau);
  const Matrix mean = (g.x * Vb.transpose()).rowwise() + (r.V * mu.mean()).transpose();
  const double rest = std::max(0.0, trace - Vb.squaredNorm());
  return score_nodes((tau * g.x).array() + r.a.dot(mu.mean()), g.w, mean,
                     Vector::Constant(g.x.size(), rest), r.c);
}

ScoreLaw nodes(const Dirac& mu, const ScoreReading& r) {
  return constant_score(r.a.dot(mu.point()), r.V * mu.point(), 0, r.c);
}

// A Gaussian per factor of the covariance.
ScoreLaw nodes(const Elliptical& mu, const ScoreReading& r) {
  std::vector<ScoreLaw> parts;
  for (Index i = 0; i < mu.scales().size(); ++i) {
    parts.push_back(nodes(Gaussian(mu.mean(), mu.scales()(i) * mu.cov()), r));
  }
  return mixed(mu.weights(), parts);
}

ScoreLaw nodes(const Student& mu, const ScoreReading& r) { return detail::student_nodes(mu, r); }

ScoreLaw nodes(const SingleIndex& mu, const ScoreReading& r) { return score_law(mu.expanded(), r); }

// s = c v + beta g(rho v), v ~ N(0,1). Panels of v are split at the kinks and are short enough for
// the density, for g, which varies on the scale 1 of its argument, and for the score. They reach as
// far as e^{2s} moves the mass of v.
ScoreLaw nodes(const LinkPair& mu, const ScoreReading& r) {
  constexpr double kReach = 8.8, kSteepest = 1.2;  // |g'| of the bounded links is below this
  const Link& link = mu.link();
  const double rho = mu.rho(), c = rho * r.a(0), beta = r.a(1), size = std::abs(beta);
  double reach = kReach, steepness = kSteepest;
  if (const Vector& k = link.coefficients(); k.size() > 0) {
    const double bend = 4 * beta * k(2) * rho * rho;
    const double spread = bend < 0.9 ? 1 / std::sqrt(1 - std::max(0.0, bend)) : 1;
    reach = kReach * spread +
            (bend < 0.9 ? 2 * (std::abs(c) + size * std::abs(k(1)) * rho) : 0) * spread * spread;
    steepness = std::abs(k(1)) + 2 * std::abs(k(2)) * rho * reach;
  } else {
    steepness = std::max(steepness, 2 * link.slope());
    reach = std::hypot(kReach, std::sqrt(8 * size * link.offset())) +
            2 * (std::abs(c) + size * link.slope() * rho);
  }
  const double rate = std::abs(c) + size * steepness * rho;  // of the score, per v
  check_reach("single_index", reach * rate);
  const double panel = std::min({1.0, 1 / rho, kScorePanel / rate});
  std::vector<double> breaks = {-reach, 0, reach};
  for (const double kink : link.kinks()) {
    if (std::abs(kink) < reach * rho) breaks.push_back(kink / rho);
  }
  std::sort(breaks.begin(), breaks.end());
  std::vector<ScoreLaw> parts;
  Vector weights(static_cast<Index>(breaks.size()) - 1);
  for (Index i = 0; i < weights.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const PanelRule v = panel_rule(breaks[at], breaks[at + 1], panel);
    const Vector H = rho * v.x;
    Vector p = v.w.array() * (-0.5 * v.x.array().square()).exp() / std::sqrt(2 * std::numbers::pi);
    Matrix points(H.size(), 2);
    for (Index j = 0; j < H.size(); ++j) points.row(j) << H(j), link(H(j));
    weights(i) = 1;
    parts.push_back(
        score_nodes(points * r.a, p, points * r.V.transpose(), Vector::Zero(H.size()), r.c));
  }
  return mixed(weights, parts);
}

ScoreLaw atoms(const Vector& s, const Vector& p, const Matrix& values, const ScoreReading& r) {
  return compacted(score_nodes(s, p, values, Vector::Zero(s.size()), r.c));
}

ScoreLaw nodes(const Empirical& mu, const ScoreReading& r) {
  return atoms(mu.tokens() * r.a, mu.weights(), mu.tokens() * r.V.transpose(), r);
}

ScoreLaw nodes(const Categorical& mu, const ScoreReading& r) {
  return atoms(r.a, mu.probs(), r.V.transpose(), r);
}

// x = cos(angle) between token and tilt, with density (1 - x^2)^{(D-3)/2}.
PanelRule cosines(Index D, double k) {
  if (D == 1) return {Vector{{-1.0, 1.0}}, Vector{{0.5, 0.5}}};
  const double width = 1 / std::sqrt(static_cast<double>(D));
  PanelRule rule;
  double power = 0.5 * static_cast<double>(D - 3);
  if (D % 2 == 0) {
    const auto n = static_cast<Index>(std::ceil(12 * k + 40 / width)) + 40;
    rule = {Vector(n), Vector::Ones(n)};
    for (Index i = 0; i < n; ++i) {
      rule.x[i] =
          -std::cos(std::numbers::pi * (static_cast<double>(i) + 0.5) / static_cast<double>(n));
    }
    power = 0.5 * static_cast<double>(D - 2);
  } else {
    rule = panel_rule(-1, 1, std::min(kScorePanel / k, 2 * width));
  }
  for (Index i = 0; i < rule.x.size(); ++i) {
    rule.w[i] *= power == 0 ? 1 : std::exp(power * std::log1p(-rule.x[i] * rule.x[i]));
  }
  rule.w /= rule.w.sum();
  return rule;
}

// Across the tilt each of the other directions has the variance R^2 (1 - x^2)/(D - 1).
ScoreLaw radial(const RadialMeasure& mu, Index D, const ScoreReading& r) {
  const double norm = r.a.norm(), R = mu.radius();
  check_reach(mu.name(), R * norm);
  const Vector Vu = r.V * r.a / norm;
  const double trace = std::max(0.0, r.V.squaredNorm() - Vu.squaredNorm());
  const PanelRule x = cosines(D, R * norm);
  const Vector across = D == 1 ? Vector::Zero(2)
                               : Vector(R * R / static_cast<double>(D - 1) * trace *
                                        (1 - x.x.array().square()).matrix());
  return compacted(score_nodes(R * norm * x.x, x.w, R * x.x * Vu.transpose(), across, r.c));
}
ScoreLaw nodes(const Sphere& mu, const ScoreReading& r) { return radial(mu, mu.dim(), r); }
ScoreLaw nodes(const Ball& mu, const ScoreReading& r) { return radial(mu, mu.dim() + 2, r); }

// Nodes x of one coordinate for the score alpha x.
PanelRule coordinate_rule(const Rademacher&, double) {
  return {Vector{{-1.0, 1.0}}, Vector{{0.5, 0.5}}};
}

PanelRule coordinate_rule(const Uniform&, double alpha) {
  check_reach("uniform", std::abs(alpha));
  PanelRule rule = panel_rule(-1, 1, kScorePanel / std::abs(alpha));
  rule.w /= 2;
  return rule;
}

// The density e^{-|x|/b}/2b is cut where it and, on the side of large scores, e^s times it are below
// e^-38. `scale` is that of the score.
PanelRule coordinate_rule(const Laplace& mu, double alpha) {
  constexpr double kTail = 38;
  const double scale = mu.b() * std::abs(alpha), panel = std::min(3.0, kScorePanel / scale);
  const double reach = kTail * (scale < 1 ? 1 / (1 - scale) : 1.0);
  check_reach("laplace", reach * scale);
  const PanelRule up = panel_rule(0, reach, panel), down = panel_rule(0, kTail, panel);
  PanelRule rule{Vector(up.x.size() + down.x.size()), Vector(up.x.size() + down.x.size())};
  const double b = alpha > 0 ? mu.b() : -mu.b();
  rule.x << -b * down.x, b * up.x;
  rule.w << 0.5 * down.w.cwiseProduct((-down.x).array().exp().matrix()),
      0.5 * up.w.cwiseProduct((-up.x).array().exp().matrix());
  return rule;
}

bool is_tilted(const Rademacher&, double) { return true; }
bool is_tilted(const Uniform&, double) { return true; }
bool is_tilted(const Laplace& mu, double alpha) { return std::abs(alpha) * mu.b() < 1; }

// Coordinate j is read along column j of V, about its tilted mean if it has one.
template <class Iid>
ScoreLaw coordinates(const Iid& mu, const ScoreReading& r) {
  struct Coordinate {
    Index j;
    ScoreLaw law;
  };
  std::vector<Coordinate> seen;
  Vector rest = r.c;
  double still = 0;  // variance of what is read of coordinates without a score
  const double variance = mu.second_moment()(0, 0);
  for (Index j = 0; j < mu.dim(); ++j) {
    const double alpha = r.a[j];
    if (alpha == 0) {
      still += variance * r.V.col(j).squaredNorm();
      continue;
    }
    const PanelRule x = coordinate_rule(mu, alpha);
    double centre = 0;
    if (is_tilted(mu, alpha)) {
      const Vector tilted = (x.w.array() * (alpha * x.x.array()).exp()).matrix();
      centre = tilted.dot(x.x) / tilted.sum();
    }
    rest -= centre * r.V.col(j);
    seen.push_back({j, compacted(score_nodes(alpha * x.x, x.w, x.x, Vector::Zero(x.x.size()),
                                             Vector::Constant(1, centre)))});
  }
  std::stable_sort(seen.begin(), seen.end(), [](const Coordinate& a, const Coordinate& b) {
    return a.law.size() < b.law.size();
  });
  std::vector<ScoreLaw> parts;
  Matrix directions(r.V.rows(), static_cast<Index>(seen.size()));
  for (Coordinate& one : seen) {
    directions.col(static_cast<Index>(parts.size())) = r.V.col(one.j);
    parts.push_back(std::move(one.law));
  }
  return independent_sum(constant_score(0, Vector::Zero(rest.size()), still, rest), parts,
                         directions);
}
ScoreLaw nodes(const Rademacher& mu, const ScoreReading& r) { return coordinates(mu, r); }
ScoreLaw nodes(const Uniform& mu, const ScoreReading& r) { return coordinates(mu, r); }
ScoreLaw nodes(const Laplace& mu, const ScoreReading& r) { return coordinates(mu, r); }

ScoreLaw nodes(const Affine& mu, const ScoreReading& r) {
  const double shift = r.a.dot(mu.c());
  return shifted(score_law(mu.inner(), {mu.B().transpose() * r.a, r.V * mu.B(), r.c - r.V * mu.c(),
                                        r.low - shift, r.high - shift}),
                 shift);
}

ScoreLaw nodes(const Mixture& mu, const ScoreReading& r) {
  std::vector<ScoreLaw> parts;
  for (const AnyMeasure& part : mu.components()) parts.push_back(score_law(part, r));
  if (const std::optional<LongTails> span = tail_span(parts)) {
    ScoreReading wide = r;
    wide.low = std::min(r.low, span->low);
    wide.high = std::max(r.high, span->high);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (parts[k].tails) parts[k] = score_law(mu.components()[k], wide);
    }
  }
  return mixed(mu.weights(), parts);
}

// Independent parts; each is centred at its own tilted mean if it has one, the last at what is left.
ScoreLaw independent(const std::vector<AnyMeasure>& parts, std::vector<ScoreReading> readings,
                     const Vector& c) {
  std::vector<ScoreLaw> laws;
  Vector rest = c;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    ScoreReading& r = readings[k];
    r.c = rest;
    if (k + 1 < parts.size()) {
      try {
        r.c = r.V * parts[k].tilted_mean(r.a);
      } catch (const DomainError&) {
        r.c = r.V * parts[k].mean();
      }
    }
    rest -= r.c;
    laws.push_back(score_law(parts[k], r));
  }
  return independent_sum(laws);
}

ScoreLaw nodes(const Sum& mu, const ScoreReading& r) {
  return independent(mu.parts(), std::vector<ScoreReading>(mu.parts().size(), r), r.c);
}

ScoreLaw nodes(const Product& mu, const ScoreReading& r) {
  std::vector<ScoreReading> readings;
  Index at = 0;
  for (const AnyMeasure& block : mu.blocks()) {
    readings.push_back({r.a.segment(at, block.dim()), r.V.middleCols(at, block.dim()), r.c});
    at += block.dim();
  }
  return independent(mu.blocks(), readings, r.c);
}

bool all_served(const std::vector<AnyMeasure>& parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [](const AnyMeasure& part) { return has_score_law(part); });
}

// Sums of scores with long tails have no nodes.
bool all_near(const std::vector<AnyMeasure>& parts) {
  return std::none_of(parts.begin(), parts.end(),
                      [](const AnyMeasure& part) { return has_long_tails(part); });
}

}  // namespace

bool has_long_tails(const AnyMeasure& mu) {
  if (const auto* affine = mu.as<Affine>()) return has_long_tails(affine->inner());
  if (const auto* mixture = mu.as<Mixture>()) return !all_near(mixture->components());
  return mu.as<Student>() != nullptr;
}

bool has_score_law(const AnyMeasure& mu) {
  bool served = false;
  visit_one_of(Served{}, mu, [&](const auto& law) {
    if constexpr (requires { law.inner(); }) {
      served = has_score_law(law.inner());
    } else if constexpr (requires { law.components(); }) {
      served = all_served(law.components());
    } else if constexpr (requires { law.blocks(); }) {
      served = all_served(law.blocks()) && all_near(law.blocks());
    } else if constexpr (requires { law.parts(); }) {
      served = all_served(law.parts()) && all_near(law.parts());
    } else if constexpr (requires { law.nu(); }) {
      served = law.nu() >= detail::kLeastNu;
    } else {
      served = true;
    }
  });
  return served;
}

bool has_score_law(const AnyMeasure& mu, const Vector& a) {
  try {
    (void)score_law(mu, {a, Matrix(0, mu.dim()), Vector(0)});
    return true;
  } catch (const CapabilityError&) {
    return false;
  }
}

ScoreLaw score_law(const AnyMeasure& mu, const ScoreReading& reading) {
  check_dimension("score_law", "a", reading.a.size(), mu.dim());
  check_dimension("score_law", "V columns", reading.V.cols(), mu.dim());
  check_dimension("score_law", "c", reading.c.size(), reading.V.rows());
  check_finite("score_law", "a", reading.a.transpose());
  if (!has_score_law(mu)) {
    throw CapabilityError("exact: " + mu.name() +
                          " tokens have no score law; the direct engine can serve them");
  }
  if (reading.a.isZero(0)) return untilted(mu, reading);
  ScoreLaw law;
  visit_one_of(Served{}, mu, [&](const auto& concrete) { law = nodes(concrete, reading); });
  return law;
}

}  // namespace esscher
