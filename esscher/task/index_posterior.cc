#include "esscher/task/index_posterior.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "esscher/measure/score_law.h"
#include "esscher/task/exact_labels.h"
#include "esscher/task/linear_family.h"

namespace esscher {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

// Labels of rows of a prompt and how well w explains them.
struct Labels {
  SingleIndexTask task;
  Matrix X;  // [L,d]
  Vector y;
  Vector x;  // the query [d]

  Labels(const SingleIndexTask& of, const Matrix& prompt, const Vector& query)
      : task(of),
        X(prompt.leftCols(prompt.cols() - 1)),
        y(prompt.col(prompt.cols() - 1)),
        x(query.head(prompt.cols() - 1)) {}

  [[nodiscard]] double log_density(const Vector& w) const {
    const Vector h = X * w;
    Vector g(h.size());
    task.link({h.data(), static_cast<std::size_t>(h.size())},
              {g.data(), static_cast<std::size_t>(g.size())});
    if (task.noise_variance > 0) return -(y - g).squaredNorm() / (2 * task.noise_variance);
    return -kMismatch * static_cast<double>((y.array() != g.array()).count());
  }
  [[nodiscard]] double label(const Vector& w) const { return task.link(w.dot(x)); }
  [[nodiscard]] double size() const { return std::sqrt(task.task_variance); }
  // What a label of the other sign costs.
  [[nodiscard]] double weight_of_sign() const {
    return task.noise_variance > 0 ? 1 / task.noise_variance : 1e9;
  }
};

double of_two_values(const Labels& at) {
  const Vector w = Vector::Constant(1, at.size());
  const double odds = at.log_density(w) - at.log_density(-w);
  const double up = 1 / (1 + std::exp(-odds));
  return up * at.label(w) + (1 - up) * at.label(-w);
}

// Arcs of the angle of w in the plane. w'x_i > 0 from angle(x_i) - pi/2 to angle(x_i) + pi/2, and
// the log density is the sum of sign(w'x_i) y_i/s2, with labels 1 for the query, which has no
// weight.
double of_arcs(const Labels& at) {
  struct Edge {
    double angle;
    Index token;  // L: the query
    double sign;  // beyond the edge
    bool operator<(const Edge& other) const { return angle < other.angle; }
  };
  const Index L = at.y.size();
  std::vector<Edge> edges;
  Vector sign = Vector::Ones(L + 1);  // at angle 0
  for (Index i = 0; i <= L; ++i) {
    const Vector x = i < L ? Vector(at.X.row(i).transpose()) : at.x;
    const double middle = std::atan2(x[1], x[0]);
    const auto turn = [](double a) { return a - kTurn * std::floor(a / kTurn); };
    edges.push_back({turn(middle - kTurn / 4), i, 1});
    edges.push_back({turn(middle + kTurn / 4), i, -1});
    sign[i] = x[0] > 0 ? 1 : -1;
  }
  std::sort(edges.begin(), edges.end());
  double log_density = at.y.dot(sign.head(L)), from = 0, top = -HUGE_VAL, mass = 0, sum = 0;
  const auto add = [&](double to) {
    const double now = log_density * at.weight_of_sign();
    if (now > top) {
      const double scale = std::exp(top - now);
      mass *= scale;
      sum *= scale;
      top = now;
    }
    const double own = (to - from) * std::exp(now - top);
    mass += own;
    sum += own * sign[L];
    from = to;
  };
  for (const Edge& edge : edges) {
    add(edge.angle);
    if (edge.token < L) log_density += at.y[edge.token] * (edge.sign - sign[edge.token]);
    sign[edge.token] = edge.sign;
  }
  add(kTurn);
  return sum / mass;
}

double of_line(const Labels& at) {
  const auto w = [&](double t) { return Vector::Constant(1, at.size() * t).eval(); };
  return line_mean([&](double t) { return at.log_density(w(t)) - t * t / 2; },
                   [&](double t) { return at.label(w(t)); }, -8.5, 8.5,
                   [](double t) { return -t; });
}

double of_circle(const Labels& at) {
  const auto w = [&](double t) { return (at.size() * Vector{{std::cos(t), std::sin(t)}}).eval(); };
  return line_mean([&](double t) { return at.log_density(w(t)); },
                   [&](double t) { return at.label(w(t)); }, 0, kTurn,
                   [](double t) { return t < kTurn / 2 ? t + kTurn / 2 : t - kTurn / 2; });
}

double of_linear_link(const Labels& at) {
  const Vector& c = at.task.link.coefficients();
  const Index d = at.x.size();
  const Matrix F = c[1] * at.size() * Matrix::Identity(d, d);
  const Vector rest = at.y.array() - c[0];
  return c[0] + ridge_mean(F, at.X, rest, at.task.noise_variance).dot(at.x);
}

double of_exact_labels(const Labels& at) { return exact_label_mean(at.task, at.X, at.y, at.x); }

using Formula = double (*)(const Labels&);

std::pair<Formula, PosteriorBy> formula_of(const SingleIndexTask& task) {
  const Index d = task.cov.rows();
  const bool gaussian = task.index_law == IndexLaw::gaussian;
  const bool sign = task.link.name() == name(LinkName::sign);
  const Vector& c = task.link.coefficients();
  if (gaussian && c.size() == 3 && c[2] == 0) return {of_linear_link, PosteriorBy::formula};
  if (sign && d == 2) return {of_arcs, PosteriorBy::formula};
  const bool is_known = sign || task.noise_variance > 0;
  if (d == 1 && is_known && (sign || !gaussian)) return {of_two_values, PosteriorBy::formula};
  if (!(task.noise_variance > 0)) {
    const std::optional<PosteriorBy> by = exact_labels_by(task);
    if (!by || by == PosteriorBy::chains) return {nullptr, PosteriorBy::chains};
    return {of_exact_labels, *by};
  }
  if (d == 1) return {of_line, PosteriorBy::quadrature};
  if (d == 2 && !gaussian) return {of_circle, PosteriorBy::quadrature};
  return {nullptr, PosteriorBy::chains};
}

// --- line_mean

struct Line {
  const std::function<double(double)>& log_density;
  const std::function<double(double)>& f;
  double top = 0;  // of the log density

  struct Mass {
    double one = 0, f = 0;
    Mass operator+(const Mass& o) const { return {one + o.one, f + o.f}; }
  };
  [[nodiscard]] Mass panel(double from, double to) const {
    const PanelRule rule = panel_rule(from, to, to - from);
    Mass out;
    for (Index i = 0; i < rule.x.size(); ++i) {
      const double own = rule.w[i] * std::exp(log_density(rule.x[i]) - top);
      if (!(own > 0)) continue;
      out.one += own;
      out.f += own * f(rule.x[i]);
    }
    return out;
  }
  [[nodiscard]] Mass refined(double from, double to, const Mass& whole, double small,
                             int depth) const {
    const double middle = (from + to) / 2;
    const Mass left = panel(from, middle), right = panel(middle, to), both = left + right;
    const double error = std::abs(both.one - whole.one) + std::abs(both.f - whole.f);
    if (depth == 0 || !(error > small)) return both;
    return refined(from, middle, left, small, depth - 1) +
           refined(middle, to, right, small, depth - 1);
  }
};

double highest_point(const std::function<double(double)>& f, double low, double high) {
  constexpr int kPoints = 256, kRounds = 12, kFewer = 8;
  double best = low, value = -HUGE_VAL, reach = (high - low) / kPoints;
  const auto look = [&](double t) {
    const double own = t >= low && t <= high ? f(t) : -HUGE_VAL;
    if (own > value) {
      value = own;
      best = t;
    }
  };
  for (int i = 0; i < kPoints; ++i) look(low + (i + 0.5) * reach);
  for (int round = 0; round < kRounds; ++round) {
    const double centre = best;
    reach /= kFewer / 2.0;
    for (int i = -kFewer; i <= kFewer; ++i) look(centre + i * reach);
  }
  return best;
}

}  // namespace

double line_mean(const std::function<double(double)>& log_density,
                 const std::function<double(double)>& f, double low, double high,
                 const std::function<double(double)>& mirror) {
  const double peak = highest_point(log_density, low, high);
  const Line line{log_density, f, log_density(peak)};
  std::vector<double> edges{low, high};
  for (int i = 1; i < 12; ++i) edges.push_back(low + i * (high - low) / 12);
  for (const double centre : {peak, mirror(peak)}) {
    edges.push_back(centre);
    for (double reach = (high - low) / 8; reach > 1e-7 * (high - low); reach /= 8) {
      edges.push_back(centre - reach);
      edges.push_back(centre + reach);
    }
  }
  std::erase_if(edges, [&](double t) { return t < low || t > high; });
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  std::vector<Line::Mass> panels;
  Line::Mass total;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    panels.push_back(line.panel(edges[i], edges[i + 1]));
    total = total + panels.back();
  }
  const double small = 1e-10 * total.one;
  total = {};
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    total = total + line.refined(edges[i], edges[i + 1], panels[i], small, 20);
  }
  return total.f / total.one;
}

void add_index_posterior(const SingleIndexTask& task, ContextTask& out) {
  const auto [formula, by] = formula_of(task);
  const bool sign = task.link.name() == name(LinkName::sign);
  const bool exact = !(task.noise_variance > 0) && !sign;
  out.posterior_by = by;
  if (exact) out.tells_law_from = labels_that_tell(task);
  if (formula != nullptr) {
    out.posterior_mean = [task, formula = formula](const Matrix& prompt, const Vector& query) {
      return Vector::Constant(1, formula(Labels(task, prompt, query))).eval();
    };
    return;
  }
  if (exact) {
    if (!exact_labels_by(task)) return;
    out.evidence = [task](const Matrix& prompt, const Vector& query) {
      const Labels at(task, prompt, query);
      return exact_relu_evidence(task, at.X, at.y, at.x);
    };
    return;
  }
  out.evidence = [task](const Matrix& prompt, const Vector& query) -> LawEvidence {
    const Labels labels(task, prompt, query);
    return {.log_density =
                [labels](const Vector& normals) {
                  return labels.log_density(drawn_index(labels.task, normals));
                },
            .mean =
                [labels](const Vector& normals) {
                  const double label = labels.label(drawn_index(labels.task, normals));
                  return Vector::Constant(1, label).eval();
                }};
  };
}

}  // namespace esscher
