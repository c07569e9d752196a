#include "esscher/prompt/errors.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/estimate/moments.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/prompt/exact_mixture.h"
#include "esscher/prompt/sampled_prompt.h"

namespace esscher {
namespace {

bool reads_covariance(Metric m) { return m != Metric::output && m != Metric::grad_v; }

using Table = std::vector<std::vector<QueryError>>;

Table exact_errors(const std::vector<Metric>& metrics, const std::vector<std::int64_t>& lengths,
                   const AnyMeasure& mu, const Attention& attention, const VectorView& z) {
  MixtureErrors errors(*gaussian_mixture_law(mu), attention, z);
  Table table(metrics.size());
  for (std::int64_t L : lengths) {
    const double weights2 = 1 / errors.effective_sample_size(Length(L));
    for (std::size_t k = 0; k < metrics.size(); ++k) {
      const ErrorParts parts = errors.error_parts(metrics[k], Length(L));
      table[k].push_back({parts.total(), 0, parts.bias2, weights2});
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

// What one prompt says at one length.
struct PromptError {
  Vector dm;   // zbar - m_a [d]
  Matrix VdC;  // V (Chat - C_a) [dv,d]; empty where no metric reads it
  double weights2 = 0;
};

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

// Sums over prompts.
struct PromptSums {
  std::vector<CoMoments> square;    // per metric, over lengths
  std::vector<PromptError> errors;  // per length

  void add(const std::vector<Metric>& metrics, const Attention& attention, const VectorView& z,
           const std::vector<PromptError>& prompt) {
    square.resize(metrics.size());
    Vector squares(static_cast<Index>(prompt.size()));
    for (std::size_t k = 0; k < metrics.size(); ++k) {
      for (std::size_t i = 0; i < prompt.size(); ++i) {
        squares[static_cast<Index>(i)] =
            square_error(metrics[k], attention, z, prompt[i].dm, prompt[i].VdC);
      }
      square[k].add(squares);
    }
    add(prompt);
  }
  void merge(const PromptSums& other) {
    square.resize(other.square.size());
    for (std::size_t k = 0; k < square.size(); ++k) square[k].merge(other.square[k]);
    add(other.errors);
  }

 private:
  void add(const std::vector<PromptError>& more) {
    if (errors.empty()) {
      errors = more;
      return;
    }
    for (std::size_t i = 0; i < errors.size(); ++i) {
      errors[i].dm += more[i].dm;
      errors[i].VdC += more[i].VdC;
      errors[i].weights2 += more[i].weights2;
    }
  }
};

// draw(r) -> one PromptError per length. Blocks of replicates run in parallel and merge in order.
template <class Draw>
Table replicate_errors(const std::vector<Metric>& metrics, const Attention& attention,
                       const VectorView& z, std::int64_t replicates, const Draw& draw) {
  constexpr std::int64_t kReplicates = 16;  // per block
  const std::int64_t blocks = (replicates + kReplicates - 1) / kReplicates;
  std::vector<PromptSums> sums(static_cast<std::size_t>(blocks));
  parallel_for(blocks, [&](std::int64_t b) {
    for (std::int64_t r = b * kReplicates; r < std::min(replicates, (b + 1) * kReplicates); ++r) {
      sums[static_cast<std::size_t>(b)].add(metrics, attention, z, draw(r));
    }
  });
  PromptSums all;
  for (const PromptSums& block : sums) all.merge(block);
  Table table(metrics.size());
  const double R = static_cast<double>(replicates);
  for (std::size_t k = 0; k < metrics.size(); ++k) {
    const Matrix cov = all.square[k].covariance_of_mean();
    for (std::size_t i = 0; i < all.errors.size(); ++i) {
      const PromptError& sum = all.errors[i];
      const Index l = static_cast<Index>(i);
      QueryError e{all.square[k].mean()[l], 0, kUnknown, sum.weights2 / R};
      if (replicates > 1) {
        e.std_error = std::sqrt(cov(l, l));
        const double raw = square_error(metrics[k], attention, z, sum.dm / R, sum.VdC / R);
        e.bias2 = (R * raw - e.value) / (R - 1);
        e.cov.assign(cov.row(l).begin(), cov.row(l).begin() + l + 1);
      }
      table[k].push_back(e);
    }
  }
  return table;
}

Table sampled_errors(const std::vector<Metric>& metrics, const std::vector<std::int64_t>& lengths,
                     const AnyMeasure& mu, const Attention& attention, const VectorView& z,
                     std::int64_t replicates, const Stream& stream) {
  const bool covariance = std::any_of(metrics.begin(), metrics.end(), reads_covariance);
  const Matrix R = covariance ? Matrix(attention.V().transpose()) : Matrix(attention.dim(), 0);
  const SampledPrompt prompt(*gaussian_mixture_law(mu), attention.tilt(z), R);
  const SampledDraw limit = prompt.limit();
  return replicate_errors(metrics, attention, z, replicates, [&](std::int64_t r) {
    std::vector<PromptError> errors;
    for (const SampledDraw& d : prompt.draw(lengths, stream.split(static_cast<std::uint64_t>(r)))) {
      errors.push_back({d.zbar - limit.zbar, (d.CR - limit.CR).transpose(), d.weights2});
    }
    return errors;
  });
}

Table direct_errors(const std::vector<Metric>& metrics, const std::vector<std::int64_t>& lengths,
                    const AnyMeasure& mu, const Attention& attention, const VectorView& z,
                    std::int64_t replicates, const Stream& stream) {
  const Vector a = attention.tilt(z);
  const Vector m = mu.tilted_mean(a);
  const bool covariance = std::any_of(metrics.begin(), metrics.end(), reads_covariance);
  const Matrix C = covariance ? mu.tilted_cov(a) : Matrix();
  return replicate_errors(metrics, attention, z, replicates, [&](std::int64_t r) {
    const Empirical prompt = mu.sample(stream.split(static_cast<std::uint64_t>(r)), lengths.back());
    PrefixTilt tilt(a, covariance);
    std::vector<PromptError> errors;
    std::int64_t l = 0;
    for (const std::int64_t L : lengths) {
      for (; l < L; ++l) tilt.add(prompt.tokens().row(l).transpose() - m);
      errors.push_back({tilt.mean(),
                        covariance ? Matrix(attention.V() * (tilt.cov() - C)) : Matrix(),
                        tilt.weights2()});
    }
    return errors;
  });
}

}  // namespace

EngineChoice sampling_engine(const AnyMeasure& mu) {
  const std::string what = "tokens are " + mu.name();
  if (gaussian_mixture_law(mu)) {
    return {Engine::sampled, what + ": scores are sampled (exact in law)"};
  }
  return {Engine::direct, what + ": tokens are drawn"};
}

EngineChoice choose_engine(Engine asked, const AnyMeasure& mu) {
  const bool mixture = gaussian_mixture_law(mu).has_value();
  const std::string what = "tokens are " + mu.name();
  switch (asked) {
    case Engine::automatic:
      if (mixture) return {Engine::exact, what + ": exact, no token is sampled"};
      return sampling_engine(mu);
    case Engine::exact:
      if (mixture) return {asked, what + ": exact, no token is sampled"};
      throw CapabilityError("exact engine: none for " + mu.name() +
                            " tokens; use engine = \"direct\"");
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
  if (engine == Engine::automatic) engine = choose_engine(engine, mu).engine;
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
