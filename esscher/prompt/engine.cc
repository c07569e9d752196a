#include "esscher/prompt/engine.h"

#include <cmath>
#include <string>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/prompt/direct.h"
#include "esscher/prompt/exact_mixture.h"
#include "esscher/prompt/sampled_error.h"

namespace esscher {

namespace {

// Whole prompts beyond this are a sign that a cheaper engine was meant.
constexpr double kMaxDirectBytes = 4e9;

bool exact_serves(const GaussianMixtureLaw& law, const Attention& attention, const VectorView& z) {
  const Vector a = attention.tilt(z);
  const double limit = law.components.size() > 1 ? kMaxMixtureTau : kMaxTau;
  for (const GaussianLaw& part : law.components) {
    if (!(a.dot(part.cov * a) <= limit * limit)) return false;
  }
  return true;
}

GaussianMixtureLaw gaussian_or_refuse(Engine engine, const AnyMeasure& mu) {
  auto law = gaussian_mixture_law(mu);
  if (!law) {
    throw CapabilityError("the " + std::string(name(engine)) +
                          " engine needs a Gaussian or Gaussian-mixture measure and got " +
                          mu.name() + "; the direct engine can serve it");
  }
  return *std::move(law);
}

// zbar of one prompt by the kernels of direct.h, which give V zbar: V = I here.
Vector tilted_mean(const Attention& attention, const Empirical& prompt, const VectorView& z) {
  const Index d = attention.dim();
  return direct_output(Attention::from_uv(attention.U(), Matrix::Identity(d, d)), prompt, z);
}

// |X_hat - X|^2 of one prompt. The limit's m_a and C_a are computed once by the caller.
double squared_error(Metric metric, const Attention& attention, const VectorView& z,
                     const Empirical& prompt, const Vector& m_a, const Matrix& C_a) {
  const Vector a = attention.tilt(z);
  const Matrix& V = attention.V();
  const auto dm = [&] { return Vector(tilted_mean(attention, prompt, z) - m_a); };
  const auto VdC = [&] { return Matrix(V * (prompt.tilted_cov(a) - C_a)); };
  switch (metric) {
    case Metric::output: return (V * dm()).squaredNorm();
    case Metric::grad_v: return static_cast<double>(V.rows()) * dm().squaredNorm();
    case Metric::grad_u: return z.squaredNorm() * VdC().squaredNorm();
    case Metric::grad_k:
      return std::pow(attention.scale(), 2) * (attention.Q() * z).squaredNorm() *
             VdC().squaredNorm();
    case Metric::grad_q:
      return std::pow(attention.scale(), 2) * z.squaredNorm() *
             (VdC() * attention.K().transpose()).squaredNorm();
  }
  return 0;
}

Estimate estimate_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (double x : values) mean += x / n;
  for (double x : values) squares += (x - mean) * (x - mean);
  return {mean, std::sqrt(squares / (n - 1) / n), static_cast<std::int64_t>(values.size()),
          Engine::direct};
}

Estimate direct_error(Metric metric, const AnyMeasure& mu, const Attention& attention,
                      const VectorView& z, std::int64_t L, const ReplicateOptions& options) {
  if (static_cast<double>(L) * static_cast<double>(mu.dim()) * sizeof(double) > kMaxDirectBytes) {
    throw CapabilityError("direct: a prompt of " + std::to_string(L) +
                          " whole tokens does not fit in memory; the exact and sampled engines "
                          "serve Gaussian measures at this length");
  }
  const Vector a = attention.tilt(z);
  const Vector m_a = mu.tilted_mean(a);
  const Matrix C_a = mu.tilted_cov(a);
  std::vector<double> values(static_cast<std::size_t>(options.replicates));
  parallel_for(options.replicates, [&](std::int64_t i) {
    const Empirical prompt = mu.sample(options.stream.split(static_cast<std::uint64_t>(i)), L);
    values[static_cast<std::size_t>(i)] = squared_error(metric, attention, z, prompt, m_a, C_a);
  });
  return estimate_of(values);
}

void check(Metric metric, const AnyMeasure& mu, const Attention& attention, const VectorView& z,
           const ReplicateOptions& options) {
  check_dimension("mean_square_error", "measure", mu.dim(), attention.dim());
  check_dimension("mean_square_error", "z", z.size(), attention.dim());
  if (options.replicates < 2) {
    throw_argument("mean_square_error", "replicates", std::to_string(options.replicates),
                   "an integer >= 2");
  }
  if (metric == Metric::grad_k || metric == Metric::grad_q) (void)attention.K();  // or refuse
}

}  // namespace

Engine choose_engine(const AnyMeasure& mu, const Attention& attention, const VectorView& z) {
  const auto law = gaussian_mixture_law(mu);
  if (!law) return Engine::direct;
  return exact_serves(*law, attention, z) ? Engine::exact : Engine::sampled;
}

Estimate mean_square_error(Engine engine, Metric metric, const AnyMeasure& mu,
                           const Attention& attention, const VectorView& z, Length L,
                           const ReplicateOptions& options) {
  check(metric, mu, attention, z, options);
  if (engine == Engine::automatic) engine = choose_engine(mu, attention, z);
  if (engine == Engine::exact) {
    const GaussianMixtureLaw law = gaussian_or_refuse(engine, mu);
    return {mean_square_error(metric, law, attention, z, L), 0, 0, engine};
  }
  if (L.is_infinite()) return {0, 0, 0, Engine::exact};
  if (engine == Engine::sampled) {
    const GaussianMixtureLaw law = gaussian_or_refuse(engine, mu);
    return sampled_mean_square_error(metric, law, attention, z, L.count(), options.replicates,
                                     options.stream);
  }
  return direct_error(metric, mu, attention, z, L.count(), options);
}

}  // namespace esscher
