#include "esscher/concentration/output_moments.h"

#include <cmath>
#include <string>

#include "esscher/base/error.h"
#include "esscher/base/svd.h"
#include "esscher/concentration/queries.h"
#include "esscher/estimate/moments.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/prompt/direct.h"

namespace esscher {
namespace {

constexpr std::int64_t kMaxLength = 1'000'000;  // every token is a query of every other

GaussianLaw law_of(const Problem& problem) {
  const auto law = gaussian_law(problem.mu);
  if (!law || !problem.is_plain()) {
    throw CapabilityError(
        "moments: the limit of the outputs is known for iid Gaussian tokens, and " +
        (law ? std::string("this prompt holds more") : problem.mu.name()) + " is not that");
  }
  return *law;
}

struct Limit {
  Limit(const Problem& problem, const GaussianLaw& law) {
    const Matrix B = problem.attention.V() * law.cov * problem.attention.U();
    mean = problem.attention.V() * law.mean + B * law.mean;
    covariance = B * law.cov * B.transpose();
  }
  Vector mean;
  Matrix covariance;
};

void check(const Problem& problem, const MomentOptions& options) {
  const auto bad = [](const char* key, const std::string& value, const char* expected) {
    throw_argument("moments", key, value, expected);
  };
  if (options.replicates < 2) {
    bad("replicates", std::to_string(options.replicates), "an integer >= 2");
  }
  if (options.lengths.empty()) bad("lengths", "an empty list", "at least one length");
  std::int64_t before = 0;
  for (const std::int64_t L : options.lengths) {
    if (L <= before || L > kMaxLength) {
      bad("lengths", std::to_string(L), "increasing integers from 1 to 1e6");
    }
    before = L;
  }
  check_dimension("moments", "attention", problem.attention.dim(), problem.mu.dim());
}

MomentPoint one_prompt(const Problem& problem, const Limit& limit, std::int64_t L,
                       const Stream& stream) {
  const Empirical prompt = problem.mu.sample(stream, static_cast<Index>(L));
  const Matrix Y = direct_outputs(problem.attention, prompt, prompt.tokens());
  const Vector m = Y.colwise().mean().transpose();
  const Matrix centred = Y.rowwise() - m.transpose();
  const Matrix S = centred.transpose() * centred / static_cast<double>(L);
  return {.L = L,
          .prompt = 0,
          .mean = (m - limit.mean).norm(),
          .covariance = (S - limit.covariance).norm()};
}

double horizon(const Problem& problem, const GaussianLaw& law) {
  const Matrix root = psd_sqrt("moments", "cov", law.cov);
  return svd(root * problem.attention.U() * root).s.maxCoeff();
}

}  // namespace

Cells<MomentPoint> moment_cells(const Problem& problem, const MomentOptions& options) {
  check(problem, options);
  const Limit limit(problem, law_of(problem));
  const auto count = static_cast<std::size_t>(options.replicates);
  Cells<MomentPoint> cells;
  for (const std::int64_t L : options.lengths) {
    for (std::size_t r = 0; r < count; ++r) {
      cells.keys.push_back("L=" + std::to_string(L) + " prompt=" + std::to_string(r));
    }
  }
  cells.compute = [problem, options, limit, count](std::size_t i) {
    const std::size_t l = i / count, r = i % count;
    const Stream stream = Stream(options.seed).split(kPromptStream).split(l).split(r);
    MomentPoint point = one_prompt(problem, limit, options.lengths[l], stream);
    point.prompt = static_cast<std::int64_t>(r);
    return std::vector{point};
  };
  return cells;
}

MomentResult moment_result(const Problem& problem, const MomentOptions& options,
                           const std::vector<MomentPoint>& points) {
  MomentResult out{.horizon = horizon(problem, law_of(problem)), .rows = {}, .fits = {}};
  for (const Moment moment : {Moment::mean, Moment::covariance}) {
    const auto n = static_cast<Index>(options.lengths.size());
    Vector values(n);
    Matrix noise = Matrix::Zero(n, n);
    for (Index l = 0; l < n; ++l) {
      const std::int64_t L = options.lengths[static_cast<std::size_t>(l)];
      Moments errors;
      for (const MomentPoint& point : points) {
        if (point.L == L) errors.add(moment == Moment::mean ? point.mean : point.covariance);
      }
      out.rows.push_back(
          {.L = L, .moment = moment, .value = errors.mean(), .std_error = errors.std_error()});
      values(l) = errors.mean();
      noise(l, l) = std::pow(errors.std_error() / errors.mean(), 2);
    }
    if (n < 3) continue;
    const PowerFit fit =
        fit_power(options.lengths, values, noise, static_cast<double>(options.replicates - 1));
    out.fits.push_back(
        {.moment = moment, .slope = fit.slope, .std_error = fit.std_error, .ci = fit.ci});
  }
  return out;
}

MomentResult output_moments(const Problem& problem, const MomentOptions& options) {
  return moment_result(problem, options, compute_here(moment_cells(problem, options)));
}

}  // namespace esscher
