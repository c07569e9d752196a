#include "esscher/concentration/study.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <sstream>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/concentration/constant.h"
#include "esscher/concentration/detail/study_state.h"
#include "esscher/concentration/gaussian_average.h"
#include "esscher/concentration/query_nodes.h"
#include "esscher/estimate/two_level.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/prompt/errors.h"
#include "esscher/prompt/exact_mixture.h"
#include "esscher/random/sobol.h"

namespace esscher {
namespace {

constexpr Index kBlock = 16;  // queries per cell
constexpr std::uint64_t kPromptStream = 1;

void check_options(const Problem& problem, const StudyOptions& o) {
  const auto bad = [](std::string_view what, const std::string& value, std::string_view expected) {
    throw_argument("study", what, value, expected);
  };
  if (o.lengths.empty()) bad("lengths", "empty", "at least one length");
  for (std::size_t i = 0; i < o.lengths.size(); ++i) {
    if (o.lengths[i] < 1 || (i > 0 && o.lengths[i] <= o.lengths[i - 1])) {
      bad("lengths", std::to_string(o.lengths[i]), "increasing integers >= 1");
    }
  }
  if (o.metrics.empty()) bad("metrics", "empty", "at least one metric");
  if (o.queries < 2) bad("queries", std::to_string(o.queries), "at least 2");
  if (o.replicates < 1) bad("replicates", std::to_string(o.replicates), "at least 1");
  check_dimension("study", "attention", problem.attention.dim(), problem.mu.dim());
  if (problem.nu) {
    check_dimension("study", "queries", problem.nu->dim(), problem.mu.dim());
  } else if (problem.points.rows() < 1) {
    bad("queries", "none", "a law of queries or points");
  } else {
    check_dimension("study", "query points", problem.points.cols(), problem.mu.dim());
  }
}

std::string join(const std::vector<double>& numbers) {
  std::string text;
  for (double x : numbers) text += (text.empty() ? "" : " ") + to_text(x);
  return text;
}

}  // namespace

double tau_of(const GaussianLaw& law, const Attention& attention, const VectorView& z) {
  const Vector a = attention.tilt(z);
  return std::sqrt(std::max(0.0, a.dot(law.cov * a)));
}

Study::Study(Problem problem, StudyOptions options) {
  check_options(problem, options);
  auto s = std::make_unique<State>(
      State{std::move(problem), std::move(options), {}, {}, {}, {}, {}, {}, {}, 0});
  s->choice = choose_engine(s->options.engine, s->problem.mu);
  s->mu = gaussian_law(s->problem.mu);
  if (s->problem.nu) s->nu = gaussian_law(*s->problem.nu);
  if (s->choice.engine == Engine::exact && s->mu && s->nu) {
    s->average.emplace(s->options.metrics, *s->mu, s->problem.attention, *s->nu);
  }
  if (!s->average) s->draw_queries();
  if (s->options.engine == Engine::automatic && s->choice.engine == Engine::exact &&
      s->too_sharp()) {
    s->average.reset();
    s->choice = sampling_engine(s->problem.mu);
    s->choice.reason +=
        ", because scores beyond tau = " + to_text(s->max_tau()) + " have no exact engine";
    s->draw_queries();
  }
  if (s->average) {
    s->choice.reason += ", and queries are averaged in closed form";
    for (std::int64_t L : s->options.lengths) s->keys.push_back("L=" + std::to_string(L));
  } else {
    s->choice.reason += s->query_text();
    for (Index q = 0; q < s->queries.rows(); q += kBlock) {
      s->keys.push_back("queries=" + std::to_string(q));
    }
  }
  state_ = std::move(s);
}

void Study::State::draw_queries() {
  const Stream stream = Stream(options.seed).split(kQueryStream);
  groups = 0;
  if (!problem.nu) {
    if (choice.engine != Engine::exact && options.replicates < 2) {
      throw_argument("study", "replicates", "1",
                     "at least 2 for given queries: one prompt shows no spread");
    }
    queries = problem.points;
  } else if (choice.engine == Engine::exact && nu && problem.mu.dim() <= kMaxSobolDims) {
    groups = kGroups;
    QueryNodes nodes =
        sobol_queries(*nu, score_form(*gaussian_mixture_law(problem.mu), problem.attention),
                      options.queries, stream);
    queries = std::move(nodes.z);
    weights = std::move(nodes.weights);
    return;
  } else {
    queries = problem.nu->sample(stream, options.queries).tokens();
  }
  weights = Vector::Ones(queries.rows());
}

std::string Study::State::query_text() const {
  std::string text = "; queries are given";
  if (groups > 0) {
    text = "; queries are averaged by " + std::to_string(groups) + " independent scramblings of " +
           std::to_string(queries.rows() / groups) + " Sobol points";
  } else if (problem.nu) {
    text = "; queries are drawn from their law";
  }
  if (choice.engine != Engine::exact && options.replicates < 2) {
    text += "; one prompt per query cannot tell bias from variance, replicates >= 2 can";
  }
  return text;
}

bool Study::State::too_sharp() const {
  if (average) {
    try {
      static_cast<void>(average->at(options.lengths.back()));
      return false;
    } catch (const CapabilityError&) {
      return true;
    }
  }
  const GaussianMixtureLaw law = *gaussian_mixture_law(problem.mu);
  double sharpest = 0;
  for (Index q = 0; q < queries.rows(); ++q) {
    for (const GaussianLaw& part : law.components) {
      sharpest = std::max(sharpest, tau_of(part, problem.attention, queries.row(q).transpose()));
    }
  }
  return sharpest > max_tau();
}

Study::~Study() = default;
Study::Study(Study&&) noexcept = default;

const std::vector<std::string>& Study::keys() const { return state_->keys; }

std::vector<Json> Study::compute(std::size_t i) const {
  return state_->average ? state_->compute_average(i) : state_->compute_queries(i);
}

std::vector<Json> Study::State::compute_average(std::size_t i) const {
  const std::int64_t L = options.lengths.at(i);
  const auto errors = average->at(L);
  const double ess = average->effective_sample_size(L);
  std::vector<Json> rows;
  for (std::size_t k = 0; k < errors.size(); ++k) {
    rows.push_back({{"L", L},
                    {"metric", name(options.metrics[k])},
                    {"value", number(errors[k].value)},
                    {"std_error", 0.0},
                    {"engine", "exact"},
                    {"asymptotic", number(average->constant(k) / static_cast<double>(L))},
                    {"ess", number(ess)},
                    {"bias", number(errors[k].bias2)},
                    {"variance", number(errors[k].variance)},
                    {"frozen", number(frozen(L))}});
  }
  return rows;
}

std::vector<Json> Study::State::compute_queries(std::size_t i) const {
  const Index first = static_cast<Index>(i) * kBlock;
  const Index count = std::min(kBlock, queries.rows() - first);
  const Stream prompts = Stream(options.seed).split(kPromptStream);
  std::vector<std::vector<Json>> parts(static_cast<std::size_t>(count));
  parallel_for(count, [&](std::int64_t j) {
    const Index q = first + j;
    const Vector z = queries.row(q).transpose();
    const auto table =
        query_errors(choice.engine, options.metrics, options.lengths, problem.mu, problem.attention,
                     z, options.replicates, prompts.split(static_cast<std::uint64_t>(q)));
    auto& rows = parts[static_cast<std::size_t>(j)];
    for (std::size_t k = 0; k < table.size(); ++k) {
      const double constant =
          asymptotic_constant(options.metrics[k], problem.mu, problem.attention, z);
      for (std::size_t l = 0; l < options.lengths.size(); ++l) {
        const QueryError& e = table[k][l];
        rows.push_back({{"L", options.lengths[l]},
                        {"metric", name(options.metrics[k])},
                        {"query", q},
                        {"value", number(e.value)},
                        {"std_error", number(e.std_error)},
                        {"engine", name(choice.engine)},
                        {"asymptotic", number(constant / static_cast<double>(options.lengths[l]))},
                        {"weights2", number(e.weights2)},
                        {"bias", number(e.bias2)}});
        // Drawn queries show how lengths move together; for given ones prompts have to.
        if (!problem.nu && !e.cov.empty()) rows.back()["cov"] = join(e.cov);
        if (groups > 0) rows.back()["weight"] = number(weights[q]);
      }
    }
  });
  std::vector<Json> rows;
  for (auto& part : parts) std::move(part.begin(), part.end(), std::back_inserter(rows));
  return rows;
}

StudyResult study(const Problem& problem, const StudyOptions& options) {
  const Study s(problem, options);
  std::vector<Json> rows;
  for (std::size_t i = 0; i < s.keys().size(); ++i) {
    auto part = s.compute(i);
    std::move(part.begin(), part.end(), std::back_inserter(rows));
  }
  return s.assemble(rows);
}

std::vector<SigmaPoint> sigma_sweep(const Problem& problem, const StudyOptions& options,
                                    const std::vector<double>& sigmas) {
  StudyOptions last = options;
  std::erase_if(last.lengths, [&](std::int64_t L) { return L < options.lengths.back() / 100; });
  if (last.lengths.size() < 3) {
    throw_argument("sigma_sweep", "lengths",
                   std::to_string(last.lengths.size()) + " in the last two decades",
                   "at least 3, to measure an exponent");
  }
  const Index d = problem.mu.dim();
  std::vector<SigmaPoint> points;
  for (double sigma : sigmas) {
    if (!(sigma > 0)) throw_argument("sigma_sweep", "sigma", to_text(sigma), "a number > 0");
    Problem scaled = problem;
    scaled.mu = Affine(Vector::Zero(d), sigma * Matrix::Identity(d, d), problem.mu);
    const StudyResult r = study(scaled, last);
    for (const MetricFit& fit : r.fits) {
      points.push_back({sigma, fit.metric, r.regime.lambda, r.regime.gamma, -fit.power.slope,
                        fit.power.std_error, -fit.power.slope * sigma * sigma});
    }
  }
  return points;
}

}  // namespace esscher
