#include "esscher/universal/score_lattice.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "esscher/simd/dot.h"

namespace esscher {
namespace {

constexpr double kReach = kScoreReach;
constexpr double kMaxLogY = 7;  // e^-y = 0 beyond
// Components with tau < kScoreStep / kNodeStep have nodes of this step in g. The error is e^{-2
// pi^2/step^2}, and the lattice has at most this error for wider components.
constexpr double kNodeStep = 1.0;

double gauss(double g) { return std::exp(-0.5 * g * g) / std::sqrt(2 * std::numbers::pi); }

// Functions of y on the lattice log y = j kScoreStep, from j = first to log y = kMaxLogY.
struct Table {
  long first, last;
  Vector hit;    // 1 - e^-y
  Vector hit_y;  // y (1 - e^-y)
  Vector once;   // y e^-y
  Vector twice;  // y^2 e^-y

  explicit Table(long from)
      : first(from), last(static_cast<long>(std::floor(kMaxLogY / kScoreStep))) {
    const long n = std::max(0L, last - first + 1);
    hit.resize(n), hit_y.resize(n), once.resize(n), twice.resize(n);
    for (long row = 0; row < n; ++row) {
      const double y = std::exp(kScoreStep * static_cast<double>(first + row));
      hit[row] = -std::expm1(-y);
      hit_y[row] = y * hit[row];
      once[row] = y * std::exp(-y);
      twice[row] = y * once[row];
    }
  }
};

// Weights over the offsets j - i, where i is the lattice point of u and j that of log y.
struct Kernel {
  long first = 0;
  Vector w;

  // sum_j f(y_j) w(j - i) over the table.
  [[nodiscard]] double dot(const Table& table, const Vector& f, long i) const {
    const long from = std::max(table.first, i + first);
    const long count = std::min(table.last, i + first + w.size() - 1) - from + 1;
    if (count <= 0) return 0;
    return simd::dot(f.data() + from - table.first, w.data() + from - i - first, count);
  }
  // The weight of all y beyond the table; `sums` holds the sums of weights from each offset on.
  [[nodiscard]] double beyond(const Vector& sums, const Table& table, long i) const {
    return sums[std::clamp<long>(table.last + 1 - i - first, 0, w.size())];
  }
};

Vector sums_from(const Vector& w) {
  Vector out = Vector::Zero(w.size() + 1);
  for (Index i = w.size() - 1; i >= 0; --i) out[i] = out[i + 1] + w[i];
  return out;
}

// A component that is wide enough for the lattice.
struct Wide {
  Index at;
  ScoreComponent part;
  Kernel kernel;       // Gaussian of the score
  Vector tilted_tail;  // sums of the tilted Gaussian: E_k[y; y beyond the table] / E_k[y]

  Wide(Index k, const ScoreComponent& component) : at(k), part(component) {
    const double tau = part.tau;
    kernel.first = static_cast<long>(std::floor((part.mu - kReach * tau) / kScoreStep));
    const long last =
        static_cast<long>(std::ceil((part.mu + (kReach + 2 * tau) * tau) / kScoreStep));
    kernel.w.resize(last - kernel.first + 1);
    Vector tilted(kernel.w.size());
    for (Index row = 0; row < kernel.w.size(); ++row) {
      const double g = deviation(row);
      kernel.w[row] = kScoreStep / tau * gauss(g);
      tilted[row] = kScoreStep / tau * gauss(g - tau);
    }
    tilted_tail = sums_from(tilted);
  }

  [[nodiscard]] double deviation(Index row) const {
    return (kScoreStep * static_cast<double>(kernel.first + row) - part.mu) / part.tau;
  }
};

// A component that is too narrow for the lattice and has nodes of its own.
struct Narrow {
  Index at;
  ScoreComponent part;
  Vector g, w, growth;  // nodes, weights, e^{mu + tau g}

  Narrow(Index k, const ScoreComponent& component) : at(k), part(component) {
    const auto count = static_cast<Index>(std::ceil((kReach + part.tau) / kNodeStep));
    g = Vector::LinSpaced(2 * count + 1, -kNodeStep * static_cast<double>(count),
                          kNodeStep * static_cast<double>(count));
    // The factor y^2 moves the mean of g to 2 tau, so nodes around tau serve the powers 0, 1 and 2.
    g.array() += part.tau;
    w = g.unaryExpr([&](double x) { return kNodeStep * gauss(x); });
    growth = g.unaryExpr([&](double x) { return std::exp(part.mu + part.tau * x); });
  }

  struct Moments {
    double psi = 0, once = 0, hit_y = 0, twice = 0, square = 0;
  };
  [[nodiscard]] double psi(double scale) const {
    double out = 0;
    for (Index row = 0; row < w.size(); ++row) out -= w[row] * std::expm1(-scale * growth[row]);
    return out;
  }
  [[nodiscard]] Moments moments(double scale) const {
    Moments out;
    for (Index row = 0; row < w.size(); ++row) {
      const double y = std::min(scale * growth[row], 1e150);  // avoids inf * 0 below
      const double survive = std::exp(-y), hit = y < 0.5 ? -std::expm1(-y) : 1 - survive;
      const double once = w[row] * y * survive;
      out.psi += w[row] * hit;
      out.hit_y += w[row] * y * hit;
      out.once += once;
      out.twice += y * once;
      out.square += y * once * part.second(g[row]);
    }
    return out;
  }
};

}  // namespace

struct ScoreLattice::Parts {
  Index K;
  std::vector<Wide> wide;
  std::vector<Narrow> narrow;
  Kernel all;         // sum_k p_k w_k over the wide components
  Kernel all_square;  // sum_k p_k w_k E_k[|zeta|^2 | g]
  Vector tail;        // sums of all
  Table table;

  [[nodiscard]] double scale(long i) const { return std::exp(kScoreStep * static_cast<double>(i)); }
  [[nodiscard]] double wide_psi(long i) const {
    return all.dot(table, table.hit, i) + all.beyond(tail, table, i);
  }
};

namespace {

// The wide components as one kernel; `weigh(component, g)` multiplies p_k w_k(g).
template <class Weigh>
Kernel combine(const std::vector<Wide>& wide, Weigh weigh) {
  Kernel out;
  if (wide.empty()) return out;
  long end = out.first = wide.front().kernel.first;
  for (const Wide& one : wide) {
    out.first = std::min(out.first, one.kernel.first);
    end = std::max(end, one.kernel.first + static_cast<long>(one.kernel.w.size()));
  }
  out.w = Vector::Zero(end - out.first);
  for (const Wide& one : wide) {
    for (Index row = 0; row < one.kernel.w.size(); ++row) {
      out.w[one.kernel.first - out.first + row] +=
          one.part.weight * one.kernel.w[row] * weigh(one.part, one.deviation(row));
    }
  }
  return out;
}

}  // namespace

ScoreLattice::ScoreLattice(const std::vector<ScoreComponent>& parts, long i_min) {
  std::vector<Wide> wide;
  std::vector<Narrow> narrow;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (parts[k].tau * kNodeStep < kScoreStep) {
      narrow.emplace_back(static_cast<Index>(k), parts[k]);
    } else {
      wide.emplace_back(static_cast<Index>(k), parts[k]);
    }
  }
  Kernel all = combine(wide, [](const ScoreComponent&, double) { return 1.0; });
  Kernel square =
      combine(wide, [](const ScoreComponent& part, double g) { return part.second(g); });
  Vector tail = sums_from(all.w);
  Table table(i_min + all.first);
  parts_ = std::make_unique<const Parts>(Parts{static_cast<Index>(parts.size()), std::move(wide),
                                               std::move(narrow), std::move(all), std::move(square),
                                               std::move(tail), std::move(table)});
}

ScoreLattice::~ScoreLattice() = default;

double ScoreLattice::psi(long i) const {
  double out = parts_->wide_psi(i);
  for (const Narrow& one : parts_->narrow) out += one.part.weight * one.psi(parts_->scale(i));
  return out;
}

// Since sum_k p_k E_k[y zeta] = 0, E_k[y e^-y] may be replaced by -E_k[y (1 - e^-y)] in F_1[zeta].
// The smaller of the two loses no digits. Their sum over k is E[y] = e^u.
ScoreLattice::Node ScoreLattice::node(long i, double* F) const {
  const Parts& all = *parts_;
  const Table& table = all.table;
  const double scale = all.scale(i);
  Node out{.psi = all.wide_psi(i), .square = all.all_square.dot(table, table.twice, i)};
  double once = all.all.dot(table, table.once, i);
  std::vector<Narrow::Moments> narrow;
  for (const Narrow& one : all.narrow) {
    const Narrow::Moments& m = narrow.emplace_back(one.moments(scale));
    const double p = one.part.weight;
    once += p * m.once;
    out.psi += p * m.psi;
    out.square += p * m.square;
  }
  const bool bulk = scale < 2 * once;
  for (std::size_t k = 0; k < narrow.size(); ++k) {
    const Narrow& one = all.narrow[k];
    F[one.at] = one.part.weight * (bulk ? -narrow[k].hit_y : narrow[k].once);
    F[all.K + one.at] = -one.part.weight * narrow[k].twice;
  }
  for (const Wide& one : all.wide) {
    const double p = one.part.weight;
    F[one.at] = bulk ? -p * one.kernel.dot(table, table.hit_y, i) -
                           one.part.tilted * scale * one.kernel.beyond(one.tilted_tail, table, i)
                     : p * one.kernel.dot(table, table.once, i);
    F[all.K + one.at] = -p * one.kernel.dot(table, table.twice, i);
  }
  return out;
}

}  // namespace esscher
