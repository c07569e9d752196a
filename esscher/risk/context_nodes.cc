#include "esscher/risk/context_nodes.h"

#include <algorithm>
#include <cmath>

#include "esscher/random/sobol.h"

namespace esscher {
namespace {

constexpr double kReach = 7.5;  // deviations; e^{-7.5^2/2} = 6e-13

// Points of a lattice of this step and shift, with Gaussian weights.
struct Lattice {
  Matrix points;  // [n,dims]
  Vector weights;
};

Lattice lattice(Index dims, double step, double shift) {
  const Index half = static_cast<Index>(kReach / step);
  std::vector<double> w;
  std::vector<Eigen::Vector2d> points;
  for (Index i = -half; i <= half; ++i) {
    const double a = step * (static_cast<double>(i) + shift);
    for (Index j = dims == 1 ? 0 : -half; j <= (dims == 1 ? 0 : half); ++j) {
      const double b = dims == 1 ? 0 : step * (static_cast<double>(j) + shift);
      if (a * a + b * b > kReach * kReach) continue;
      points.emplace_back(a, b);
      w.push_back(std::exp(-(a * a + b * b) / 2));
    }
  }
  Lattice out{Matrix(static_cast<Index>(points.size()), dims),
              Vector::Map(w.data(), static_cast<Index>(w.size()))};
  for (std::size_t i = 0; i < points.size(); ++i) {
    out.points.row(static_cast<Index>(i)) = points[i].head(dims).transpose();
  }
  out.weights /= out.weights.sum();
  return out;
}

}  // namespace

bool has_lattice(const ContextTask& task) {
  return task.law_normals == 0 && task.query_normals <= 2;
}

std::vector<WeightedNode> lattice_nodes(const ContextTask& task, int half) {
  const double step = task.query_normals == 1 ? 0.25 : 0.45;
  const Lattice rule = lattice(task.query_normals, step, 0.5 * half);
  std::vector<WeightedNode> out;
  for (Index k = 0; k < task.strata.size(); ++k) {
    for (Index i = 0; i < rule.points.rows(); ++i) {
      out.push_back(
          {task.node(rule.points.row(i).transpose(), k), task.strata[k] * rule.weights[i]});
    }
  }
  return out;
}

std::vector<WeightedNode> net_nodes(const ContextTask& task, int log2_count, const Stream& stream) {
  const auto strata = static_cast<double>(task.strata.size());
  const int m = std::max(3, log2_count - static_cast<int>(std::ceil(std::log2(strata))));
  std::vector<WeightedNode> out;
  for (Index k = 0; k < task.strata.size(); ++k) {
    const Matrix normals = sobol_normals(task.law_normals + task.query_normals, m,
                                         stream.split(static_cast<std::uint64_t>(k)));
    const double weight = task.strata[k] / static_cast<double>(normals.rows());
    for (Index i = 0; i < normals.rows(); ++i) {
      out.push_back({task.node(normals.row(i).transpose(), k), weight});
    }
  }
  return out;
}

}  // namespace esscher
