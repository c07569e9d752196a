#include "esscher/concentration/sup_error.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/base/stop.h"
#include "esscher/base/svd.h"
#include "esscher/concentration/detail/plan.h"
#include "esscher/concentration/queries.h"
#include "esscher/measure/covariance_bound.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/measure/stationary.h"

namespace esscher {
namespace {

constexpr Index kMaxRank = 3;
constexpr double kMaxBytes = 2e9;

double operator_norm(const MatrixView& A) { return svd(A).s.maxCoeff(); }

// Orthonormal directions of queries that change scores, as rows [r,d].
Matrix query_space(const Attention& attention) {
  const Svd parts = svd(attention.U());
  const Index rank = (parts.s.array() > 1e-12 * std::max(parts.s.maxCoeff(), 1e-300)).count();
  if (rank > kMaxRank) {
    throw CapabilityError("sup: U has rank " + std::to_string(rank) +
                          ", and nets over balls are certified up to rank 3");
  }
  return parts.V.leftCols(rank).transpose();
}

// What |V C_a U| does not exceed for |z| <= R.
double limit_slope(const Problem& p, double radius) {
  const Matrix& U = p.attention.U();
  const Matrix& V = p.attention.V();
  std::optional<Matrix> G;
  if (const auto law = gaussian_law(p.mu)) G = law->cov;
  if (const auto lags = autocovariances(p.mu)) G = lags->front();
  if (G) return operator_norm(V * *G * U);
  const double size = operator_norm(U);
  const auto bound = covariance_bound(p.mu, size * radius);
  if (!bound || !std::isfinite(*bound)) {
    throw CapabilityError("sup: no bound on the slope of the limit is known for " + p.mu.name() +
                          " tokens" + (bound ? " at this radius" : "") +
                          ", so that no net can be certified");
  }
  return operator_norm(V) * *bound * size;
}

// One prompt: read is V z_l [n,dv], key is E U'z_l [n,r] with E the query space, so that the score of
// the query E'y is <y, key>.
class PromptErrorSurface {
 public:
  PromptErrorSurface(const Problem& problem, const Matrix& space, const MatrixView& tokens,
                     double slope)
      : problem_(problem), space_(space), slope_(slope) {
    read_ = tokens * problem.attention.V().transpose();
    key_ = tokens * problem.attention.U() * space.transpose();
    key_centre_ = key_.colwise().mean().transpose();
    key_radius_ =
        std::sqrt((key_.rowwise() - key_centre_.transpose()).rowwise().squaredNorm().maxCoeff());
  }

  struct Value {
    double error = 0;
    double spread = 0;  // sqrt(tr V C_hat V' tr U'C_hat U)
    double rho = 0;
  };
  [[nodiscard]] Value at(const Vector& y) const {
    const Vector score = key_ * y;
    Vector omega = (score.array() - score.maxCoeff()).exp();
    omega /= omega.sum();
    const Vector output = read_.transpose() * omega, key = key_.transpose() * omega;
    const Vector limit = problem_.attention.V() *
                         problem_.mu.tilted_mean(problem_.attention.tilt(space_.transpose() * y));
    const double read_spread =
        omega.dot((read_.rowwise() - output.transpose()).rowwise().squaredNorm());
    const double key_spread = omega.dot((key_.rowwise() - key.transpose()).rowwise().squaredNorm());
    return {(output - limit).norm(), std::sqrt(read_spread * key_spread),
            key_radius_ + (key - key_centre_).norm()};
  }
  // The error rises by at most this within delta of a point.
  [[nodiscard]] double rise(const Value& value, double delta) const {
    return delta * (std::exp(2 * delta * value.rho) * value.spread + slope_);
  }

 private:
  const Problem& problem_;
  const Matrix& space_;
  double slope_;
  Matrix read_, key_;
  Vector key_centre_;
  double key_radius_ = 0;
};

struct Cube {
  Vector centre;
  double half = 0;
  double bound = 0;

  bool operator<(const Cube& other) const { return bound < other.bound; }
};

SupPoint branch_and_bound(const PromptErrorSurface& surface, Index rank, const SupOptions& o) {
  SupPoint out;
  std::priority_queue<Cube> open;
  const double diagonal = std::sqrt(static_cast<double>(rank));
  const auto visit = [&](Cube cube) {
    const double norm = cube.centre.norm(), delta = cube.half * diagonal;
    if (norm > o.radius + delta) return;  // outside of the ball
    const Vector point = norm > o.radius ? Vector(cube.centre * (o.radius / norm)) : cube.centre;
    const PromptErrorSurface::Value value = surface.at(point);
    ++out.points;
    out.lower = std::max(out.lower, value.error);
    cube.bound = value.error + surface.rise(value, delta);
    open.push(std::move(cube));
  };
  visit({Vector::Zero(rank), rank == 0 ? 0 : o.radius, 0});
  while (open.top().bound > out.lower * (1 + o.tolerance) && out.points < o.max_points) {
    check_stop();
    const Cube cube = open.top();
    if (cube.half < 1e-13 * o.radius) break;
    open.pop();
    for (Index corner = 0; corner < (Index{1} << rank); ++corner) {
      Vector centre = cube.centre;
      for (Index i = 0; i < rank; ++i) {
        centre(i) += ((corner >> i) & 1) != 0 ? 0.5 * cube.half : -0.5 * cube.half;
      }
      visit({std::move(centre), 0.5 * cube.half, 0});
    }
  }
  out.upper = std::max(out.lower, open.top().bound);
  return out;
}

void check_options(const Problem& problem, const SupOptions& o) {
  const auto bad = [](std::string_view what, const std::string& value, std::string_view expected) {
    throw_argument("sup", what, value, expected);
  };
  if (!(o.radius > 0) || !std::isfinite(o.radius)) bad("radius", to_text(o.radius), "a number > 0");
  if (!(o.tolerance > 0)) bad("tolerance", to_text(o.tolerance), "a number > 0");
  if (o.replicates < 2) bad("replicates", std::to_string(o.replicates), "at least 2 prompts");
  if (o.lengths.empty()) bad("lengths", "empty", "at least one length");
  for (std::size_t i = 0; i < o.lengths.size(); ++i) {
    if (o.lengths[i] < 1 || (i > 0 && o.lengths[i] <= o.lengths[i - 1])) {
      bad("lengths", std::to_string(o.lengths[i]), "increasing integers >= 1");
    }
  }
  const double bytes = 8.0 *
                       static_cast<double>(problem.mu.dim() + problem.attention.output_dim()) *
                       static_cast<double>(o.lengths.back());
  if (bytes > kMaxBytes) {
    bad("lengths", std::to_string(o.lengths.back()),
        "prompts that fit in memory, all tokens drawn");
  }
  check_dimension("sup", "attention", problem.attention.dim(), problem.mu.dim());
}

}  // namespace

SupPoint sup_of_prompt(const Problem& problem, const MatrixView& tokens,
                       const SupOptions& options) {
  const Matrix space = query_space(problem.attention);
  const PromptErrorSurface surface(problem, space, tokens, limit_slope(problem, options.radius));
  SupPoint out = branch_and_bound(surface, space.rows(), options);
  out.L = tokens.rows();
  return out;
}

Cells<SupPoint> sup_cells(const Problem& problem, const SupOptions& options) {
  check_options(problem, options);
  (void)query_space(problem.attention);
  (void)limit_slope(problem, options.radius);
  Cells<SupPoint> cells;
  for (std::int64_t r = 0; r < options.replicates; ++r) {
    cells.keys.push_back("prompt=" + std::to_string(r));
  }
  cells.compute = [problem, options](std::size_t r) {
    const Stream prompts = Stream(options.seed).split(kPromptStream);
    const Matrix tokens =
        problem.mu.sample(prompts.split(r), static_cast<Index>(options.lengths.back())).tokens();
    std::vector<SupPoint> rows;
    for (const std::int64_t L : options.lengths) {
      rows.push_back(sup_of_prompt(problem, tokens.topRows(static_cast<Index>(L)), options));
      rows.back().prompt = static_cast<std::int64_t>(r);
    }
    return rows;
  };
  return cells;
}

std::vector<SupRow> sup_rows(const std::vector<SupPoint>& points, const SupOptions& options) {
  std::vector<SupRow> rows;
  for (const std::int64_t L : options.lengths) {
    std::vector<double> lower, upper;
    double looked = 0;
    for (const SupPoint& point : points) {
      if (point.L != L) continue;
      lower.push_back(point.lower);
      upper.push_back(point.upper);
      looked += static_cast<double>(point.points);
    }
    const auto n = static_cast<Index>(lower.size());
    const Vector low = Eigen::Map<const Vector>(lower.data(), n);
    const Vector high = Eigen::Map<const Vector>(upper.data(), n);
    const double count = static_cast<double>(n), mean = low.mean();
    rows.push_back(
        {.L = L,
         .value = mean,
         .std_error = std::sqrt((low.array() - mean).square().sum() / (count - 1) / count),
         .ci = {mean_interval(low).lo, mean_interval(high).hi},
         .resolution = high.mean() - mean,
         .points = looked / count});
  }
  return rows;
}

}  // namespace esscher
