#include "esscher/risk/quadrature.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/estimate/moments.h"
#include "esscher/risk/carriers.h"
#include "esscher/risk/closed_form.h"
#include "esscher/risk/detail/node_letters.h"
#include "esscher/risk/query_risk.h"

namespace esscher {
namespace {

using detail::LetterBlock;
using detail::LetterMaps;
using detail::NodeRows;

constexpr Index kBlock = NodeRows::kBlock;
// Blocks per unit of parallel work; part of the result's rounding.
constexpr Index kUnit = 4;

std::int64_t units(const NodeRows& nodes) { return (nodes.blocks() + kUnit - 1) / kUnit; }

// visit(first slot, letters) for the blocks of a unit.
template <class Visit>
void for_blocks(const NodeRows& nodes, const LetterMaps& maps, std::int64_t unit,
                const Visit& visit) {
  LetterBlock letters(maps.d);
  const Index end = std::min<Index>(nodes.blocks(), (unit + 1) * kUnit);
  for (Index block = unit * kUnit; block < end; ++block) {
    make_letters(nodes, maps, block, letters);
    visit(block, letters);
  }
}

// tau^2 as the tables take it. Rounding may leave less than 0.
double not_negative(double tau2) { return std::max(0.0, tau2); }

}  // namespace

struct SoftmaxRisk::Impl {
  Impl(LinearRegressionTask given, NodeTables of_length, const RegressionNodes& at)
      : task(std::move(given)),
        tables(std::move(of_length)),
        count(at.x.rows()),
        nodes(at.w, at.x, at.weight, task.prompt_cov, task.noise_variance) {}

  // A table for the largest tau of all nodes.
  [[nodiscard]] NodeFunctionTable table(const LetterMaps& maps) const {
    Vector largest = Vector::Zero(units(nodes));
    parallel_for(largest.size(), [&](std::int64_t unit) {
      for_blocks(nodes, maps, unit, [&](Index, LetterBlock& letters) {
        const Eigen::Map<const Vector> tau2(letters.tau2(), kBlock);
        const double most = tau2.allFinite() ? tau2.maxCoeff() : HUGE_VAL;
        largest(unit) = std::max(largest(unit), most);
      });
    });
    const double most = largest.maxCoeff();
    if (!std::isfinite(most)) {
      throw DomainError("softmax_risk: U or r is not finite or too large");
    }
    return tables.up_to(std::sqrt(most));
  }

  LinearRegressionTask task;
  NodeTables tables;
  double control = 0;
  Index count;
  NodeRows nodes;
};

double default_control(std::int64_t L) {
  return std::max(0.0, 1.0 - 50.0 / static_cast<double>(L));
}

void check_readout(const LinearRegressionTask& task, const Readout& at) {
  check_dimension("softmax_risk", "r", at.r.size(), task.dim + 1);
  check_dimension("softmax_risk", "U", at.U.rows(), task.dim + 1);
}

SoftmaxRisk::SoftmaxRisk(const LinearRegressionTask& task, std::int64_t L, RegressionNodes nodes,
                         std::optional<double> control)
    : SoftmaxRisk(task, NodeTables(L), std::move(nodes), control) {}

SoftmaxRisk::SoftmaxRisk(const LinearRegressionTask& task, NodeTables tables, RegressionNodes nodes,
                         std::optional<double> control) {
  const std::int64_t L = tables.length();
  task.check();
  if (L < 1) throw_argument("softmax_risk", "length", std::to_string(L), "an integer >= 1");
  check_dimension("softmax_risk", "nodes", nodes.w.cols(), task.dim);
  impl_ = std::make_unique<Impl>(task, std::move(tables), nodes);
  impl_->control = control.value_or(default_control(L));
}

SoftmaxRisk::~SoftmaxRisk() = default;
SoftmaxRisk::SoftmaxRisk(SoftmaxRisk&&) noexcept = default;
SoftmaxRisk& SoftmaxRisk::operator=(SoftmaxRisk&&) noexcept = default;

std::int64_t SoftmaxRisk::length() const { return impl_->tables.length(); }

NodeShares SoftmaxRisk::shares(const Readout& at) const {
  const Impl& m = *impl_;
  check_readout(m.task, at);
  const LetterMaps maps(m.task.prompt_cov, at);
  const NodeFunctionTable table = m.table(maps);
  Vector limit(m.nodes.blocks() * kBlock), excess(limit.size());
  parallel_for(units(m.nodes), [&](std::int64_t unit) {
    for_blocks(m.nodes, maps, unit, [&](Index block, LetterBlock& l) {
      for (Index i = 0, k = block * kBlock; i < kBlock; ++i, ++k) {
        const double y = m.nodes.target()[k], miss = l.g()[i] - y;
        const double half = 0.5 * m.nodes.weight()[k];
        const NodeFunctions u = table.at_tau2(not_negative(l.tau2()[i]));
        limit(k) = half * miss * miss;
        excess(k) = half * node_error(u, 0, l.g()[i], l.q()[i], y).value;
      }
    });
  });
  NodeShares out{Vector(m.count), Vector(m.count)};
  for (Index i = 0; i < m.count; ++i) {
    out.limit(i) = limit(m.nodes.slot(i));
    out.excess(i) = excess(m.nodes.slot(i));
  }
  return out;
}

double SoftmaxRisk::operator()(const Readout& at, Readout* gradient) const {
  const Impl& m = *impl_;
  check_readout(m.task, at);
  const Index d = m.task.dim;
  // tau^2 of all nodes first: its range decides the table. Letters are made again, which takes less time
  // than to keep them.
  const LetterMaps maps(m.task.prompt_cov, at);
  const NodeFunctionTable table = m.table(maps);

  struct Sums {
    double risk = 0;
    Readout slope;
  };
  std::vector<Sums> sums(static_cast<std::size_t>(units(m.nodes)));
  parallel_for(units(m.nodes), [&](std::int64_t unit) {
    Sums& sum = sums[static_cast<std::size_t>(unit)];
    if (gradient != nullptr) sum.slope = Readout::zero(d + 1);
    for_blocks(m.nodes, maps, unit, [&](Index block, LetterBlock& l) {
      for (Index i = 0, k = block * kBlock; i < kBlock; ++i, ++k) {
        const NodeFunctions u = table.at_tau2(not_negative(l.tau2()[i]));
        const NodeError e = node_error(u, 1 - m.control, l.g()[i], l.q()[i], m.nodes.target()[k]);
        const double weight = m.nodes.weight()[k];
        sum.risk += weight * e.value;
        l.d_g()[i] = weight * e.d_g;
        l.d_tau2()[i] = weight * 2 * e.d_tau2;
        l.d_q()[i] = weight * 2 * e.d_q;
      }
      if (gradient != nullptr) add_slope(m.nodes, maps, block, l, sum.slope);
    });
  });

  const double weight = 0.5 / static_cast<double>(m.count);
  double risk =
      (1 - m.control) * m.task.irreducible_risk() + m.control * limit_risk(m.task, at, gradient);
  if (gradient != nullptr) {
    gradient->U *= m.control;
    gradient->r *= m.control;
  }
  for (const Sums& sum : sums) {
    risk += weight * sum.risk;
    if (gradient == nullptr) continue;
    gradient->U += weight * sum.slope.U;
    gradient->r += weight * sum.slope.r;
  }
  return risk;
}

namespace {

// The nodes' part of a risk with and without the control variate R_inf. For long prompts the
// control takes most of the error away, for frozen ones (large tau) it adds some. Both are
// unbiased; the one with the smaller spread is the answer.
class TwoAnswers {
 public:
  void add(const NodeShares& shares) {
    with_.add(shares.excess);
    without_.add(shares.limit + shares.excess);
  }
  [[nodiscard]] Estimate estimate(double limit, double irreducible) const {
    const bool controlled = with_.means.std_error() <= without_.means.std_error();
    const Part& part = controlled ? with_ : without_;
    Estimate out = part.means.estimate(Engine::quadrature);
    out.value += controlled ? limit : irreducible;
    out.heavy = part.carriers < kFewCarriers;
    return out;
  }

 private:
  struct Part {
    Moments means;               // over scramblings
    double carriers = HUGE_VAL;  // the least of them

    void add(const Vector& shares) {
      means.add(shares.mean());
      carriers = std::min(carriers, esscher::carriers(shares));
    }
  };
  Part with_, without_;
};

}  // namespace

Estimate softmax_risk(const LinearRegressionTask& task, const Readout& at, Length length,
                      const QuadratureOptions& options, const Stream& stream) {
  if (length.is_infinite()) return {limit_risk(task, at), 0, 0, Engine::exact};
  if (options.scramblings < 2) {
    throw_argument("softmax_risk", "scramblings", std::to_string(options.scramblings),
                   "an integer >= 2");
  }
  check_readout(task, at);
  const NodeTables tables(length.count());
  const ScoreForms forms = score_forms(task, at);
  TwoAnswers answers;
  for (Index i = 0; i < options.scramblings; ++i) {
    const Stream own = stream.split(i);
    if (is_blind_to_labels(task, at)) {
      const Matrix normals = query_normals(task, options.log2_nodes, own, Scrambling::nested);
      answers.add(QueryRisk(task, tables, query_nodes(task, normals, forms)).shares(at));
    } else {
      const Matrix normals = pair_normals(task, options.log2_nodes, own, Scrambling::nested);
      answers.add(SoftmaxRisk(task, tables, regression_nodes(task, normals, forms)).shares(at));
    }
  }
  return answers.estimate(limit_risk(task, at), task.irreducible_risk());
}

}  // namespace esscher
