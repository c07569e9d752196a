#include "esscher/concentration/query_error.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/prompt/exact.h"
#include "esscher/prompt/exact_mixture.h"
#include "esscher/prompt/sampled_error.h"

namespace esscher {
namespace {

bool reads_covariance(Metric m) { return m != Metric::output && m != Metric::grad_v; }

using Table = std::vector<std::vector<QueryError>>;

Table exact_errors(const std::vector<Metric>& metrics, const std::vector<std::int64_t>& lengths,
                   const AnyMeasure& mu, const Attention& attention, const VectorView& z) {
  Table table;
  const auto law = gaussian_law(mu);
  const auto mixture = law ? std::nullopt : gaussian_mixture_law(mu);
  for (Metric metric : metrics) {
    auto& row = table.emplace_back();
    for (std::int64_t L : lengths) {
      const ErrorParts parts = law ? error_parts(metric, *law, attention, z, Length(L))
                                   : error_parts(metric, *mixture, attention, z, Length(L));
      QueryError e{parts.total(), 0, parts.bias2, kUnknown};
      if (law) e.weights2 = 1 / effective_sample_size(*law, attention, z, Length(L));
      row.push_back(e);
    }
  }
  return table;
}

Table sampled_errors(const std::vector<Metric>& metrics, const std::vector<std::int64_t>& lengths,
                     const AnyMeasure& mu, const Attention& attention, const VectorView& z,
                     std::int64_t replicates, const Stream& stream) {
  const auto law = gaussian_mixture_law(mu);
  Table table;
  for (Metric metric : metrics) {
    auto& row = table.emplace_back();
    for (const Estimate& e :
         sampled_mean_square_error(metric, *law, attention, z, lengths, replicates, stream)) {
      row.push_back({e.value, e.std_error, kUnknown, kUnknown});
    }
  }
  return table;
}

// Running tilted sums of one prompt, read at every length asked for.
class PrefixTilt {
 public:
  PrefixTilt(const Vector& a, bool covariance) : a_(a), covariance_(covariance) {
    S1_ = Vector::Zero(a.size());
    if (covariance) S2_ = Matrix::Zero(a.size(), a.size());
  }
  void add(const VectorView& x) {  // x is centred at m_a, so that the sums below are small
    const double s = a_.dot(x);
    if (s > top_) {
      const double shrink = std::exp(top_ - s);
      S0_ *= shrink;
      S00_ *= shrink * shrink;
      S1_ *= shrink;
      if (covariance_) S2_ *= shrink;
      top_ = s;
    }
    const double w = std::exp(s - top_);
    S0_ += w;
    S00_ += w * w;
    S1_ += w * x;
    if (covariance_) S2_.noalias() += w * x * x.transpose();
  }
  [[nodiscard]] Vector mean() const { return S1_ / S0_; }
  [[nodiscard]] Matrix cov() const { return S2_ / S0_ - mean() * mean().transpose(); }
  [[nodiscard]] double weights2() const { return S00_ / (S0_ * S0_); }

 private:
  Vector a_;
  bool covariance_;
  double top_ = -std::numeric_limits<double>::infinity();
  double S0_ = 0, S00_ = 0;
  Vector S1_;
  Matrix S2_;
};

// |X_hat - X|^2 from zbar - m_a and Chat - C_a.
double square_error(Metric metric, const Attention& attention, const VectorView& z,
                    const Vector& dm, const Matrix& VdC) {
  switch (metric) {
    case Metric::output: return (attention.V() * dm).squaredNorm();
    case Metric::grad_v: return static_cast<double>(attention.output_dim()) * dm.squaredNorm();
    case Metric::grad_u: return z.squaredNorm() * VdC.squaredNorm();
    case Metric::grad_k:
      return std::pow(attention.scale(), 2) * (attention.Q() * z).squaredNorm() * VdC.squaredNorm();
    case Metric::grad_q:
      return std::pow(attention.scale(), 2) * z.squaredNorm() *
             (VdC * attention.K().transpose()).squaredNorm();
  }
  return 0;
}

Table direct_errors(const std::vector<Metric>& metrics, const std::vector<std::int64_t>& lengths,
                    const AnyMeasure& mu, const Attention& attention, const VectorView& z,
                    std::int64_t replicates, const Stream& stream) {
  const Vector a = attention.tilt(z);
  const Vector m = mu.tilted_mean(a);
  const bool covariance = std::any_of(metrics.begin(), metrics.end(), reads_covariance);
  const Matrix C = covariance ? mu.tilted_cov(a) : Matrix();
  const std::size_t nL = lengths.size(), nM = metrics.size();
  std::vector<std::vector<Moments>> moments(nM, std::vector<Moments>(nL));
  std::vector<Vector> mean_shift(nL, Vector::Zero(a.size()));
  std::vector<Moments> spread(nL), weights2(nL);
  for (std::int64_t r = 0; r < replicates; ++r) {
    const Empirical prompt = mu.sample(stream.split(static_cast<std::uint64_t>(r)), lengths.back());
    PrefixTilt tilt(a, covariance);
    std::int64_t l = 0;
    for (std::size_t i = 0; i < nL; ++i) {
      for (; l < lengths[i]; ++l) tilt.add(prompt.tokens().row(l).transpose() - m);
      const Vector dm = tilt.mean();
      const Matrix VdC = covariance ? Matrix(attention.V() * (tilt.cov() - C)) : Matrix();
      for (std::size_t k = 0; k < nM; ++k) {
        moments[k][i].add(square_error(metrics[k], attention, z, dm, VdC));
      }
      mean_shift[i] += dm / static_cast<double>(replicates);
      weights2[i].add(tilt.weights2());
    }
  }
  Table table(nM);
  for (std::size_t k = 0; k < nM; ++k) {
    for (std::size_t i = 0; i < nL; ++i) {
      QueryError e{moments[k][i].mean(), replicates > 1 ? moments[k][i].std_error() : 0, kUnknown,
                   weights2[i].mean()};
      if (!reads_covariance(metrics[k]) && replicates > 1) {
        // |average|^2 contains the average's own variance (value - bias2)/R; take it out.
        const double R = static_cast<double>(replicates);
        const double raw = square_error(metrics[k], attention, z, mean_shift[i], Matrix());
        e.bias2 = std::max(0.0, (R * raw - e.value) / (R - 1));
      }
      table[k].push_back(e);
    }
  }
  return table;
}

}  // namespace

EngineChoice sampling_engine(const AnyMeasure& mu) {
  const std::string what = "tokens are " + mu.name();
  if (gaussian_mixture_law(mu)) {
    return {Engine::sampled, what + ": scores are sampled (exact in law)"};
  }
  return {Engine::direct, what + ": tokens are drawn"};
}

EngineChoice choose_engine(Engine asked, const std::vector<Metric>& metrics, const AnyMeasure& mu) {
  const bool gaussian = gaussian_law(mu).has_value();
  const bool mixture = gaussian || gaussian_mixture_law(mu).has_value();
  const bool covariance = std::any_of(metrics.begin(), metrics.end(), reads_covariance);
  const bool exact = gaussian || (mixture && !covariance);
  const std::string what = "tokens are " + mu.name();
  switch (asked) {
    case Engine::automatic:
      if (exact) return {Engine::exact, what + ": exact, no token is sampled"};
      return sampling_engine(mu);
    case Engine::exact:
      if (exact) return {asked, what + ": exact, no token is sampled"};
      throw CapabilityError("exact engine: none for " + mu.name() + " tokens" +
                            (mixture ? " and gradients in U; use engine = \"sampled\""
                                     : "; use engine = \"direct\""));
    case Engine::sampled:
      if (mixture) return {asked, what + ": scores are sampled (exact in law)"};
      throw CapabilityError("sampled engine: tokens must be Gaussian or a Gaussian mixture, not " +
                            mu.name() + "; use engine = \"direct\"");
    case Engine::direct: return {asked, what + ": tokens are drawn"};
  }
  return {};
}

Table query_errors(Engine engine, const std::vector<Metric>& metrics,
                   const std::vector<std::int64_t>& lengths, const AnyMeasure& mu,
                   const Attention& attention, const VectorView& z, std::int64_t replicates,
                   const Stream& stream) {
  if (engine == Engine::automatic) engine = choose_engine(engine, metrics, mu).engine;
  if (engine == Engine::exact) return exact_errors(metrics, lengths, mu, attention, z);
  if (replicates < 1) {
    throw_argument("query_errors", "replicates", std::to_string(replicates), "at least 1");
  }
  if (engine == Engine::sampled) {
    return sampled_errors(metrics, lengths, mu, attention, z, replicates, stream);
  }
  return direct_errors(metrics, lengths, mu, attention, z, replicates, stream);
}

}  // namespace esscher
