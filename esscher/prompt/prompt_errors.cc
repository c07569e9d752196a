// Errors of prompts of several parts, by each engine.
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/prompt/detail/replicates.h"
#include "esscher/prompt/exact_prompt.h"
#include "esscher/prompt/sampled_prompt.h"

namespace esscher::detail {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What errors are measured from: the tilted mean and covariance of the limit, or the saturation value.
struct Reference {
  Vector m;
  Matrix C;
};

Reference reference(const Question& ask, const Prompt& prompt, const Vector& a) {
  if (ask.about_zero) return {Vector::Zero(a.size()), Matrix()};
  const std::string none = no_limit_reason(prompt);
  if (none.empty()) {
    return {ask.mu.tilted_mean(a), ask.covariance() ? ask.mu.tilted_cov(a) : Matrix()};
  }
  if (ask.covariance()) {
    throw CapabilityError("direct engine: " + none +
                          ", so that gradients in U, K and Q have nothing to be compared with");
  }
  const Index d = ask.attention.dim();
  const Attention tokens = Attention::from_uv(ask.attention.U(), Matrix::Identity(d, d));
  return {ExactPrompt(prompt, tokens, ask.z).expected_output(Length::infinity()), Matrix()};
}

// Tokens, or sums over tokens, that are put together by their log-weights. A sum over tokens has a
// mean and the sum of its squared weights, both relative to its total.
struct Piece {
  double log_weight;
  double squares;  // 1 for a token
  Vector x;        // about the reference
  std::size_t part;
};

// Softmax over all pieces, the largest log-weight taken out first.
class Softmax {
 public:
  Softmax(std::vector<Piece> pieces, Index d) : pieces_(std::move(pieces)), mean_(Vector::Zero(d)) {
    double top = -kInfinity;
    for (const Piece& piece : pieces_) top = std::max(top, piece.log_weight);
    double total = 0;
    for (Piece& piece : pieces_) {
      piece.log_weight = std::exp(piece.log_weight - top);
      total += piece.log_weight;
    }
    for (Piece& piece : pieces_) {
      piece.log_weight /= total;
      mean_ += piece.log_weight * piece.x;
    }
  }
  [[nodiscard]] const Vector& mean() const { return mean_; }
  [[nodiscard]] Matrix covariance() const {
    Matrix out = Matrix::Zero(mean_.size(), mean_.size());
    for (const Piece& piece : pieces_) {
      const Vector gap = piece.x - mean_;
      out.noalias() += piece.log_weight * gap * gap.transpose();
    }
    return out;
  }
  [[nodiscard]] double weights2() const {
    double out = 0;
    for (const Piece& piece : pieces_) out += piece.log_weight * piece.log_weight * piece.squares;
    return out;
  }
  [[nodiscard]] Vector weights(std::size_t parts) const {
    Vector out = Vector::Zero(static_cast<Index>(parts));
    for (const Piece& piece : pieces_) out[static_cast<Index>(piece.part)] += piece.log_weight;
    return out;
  }

 private:
  std::vector<Piece> pieces_;  // log_weight holds the weight
  Vector mean_;
};

// A prompt of several parts at one query, whatever draws its groups.
class PromptPieces {
 public:
  PromptPieces(const Question& ask, const Prompt& prompt)
      : ask_(ask),
        prompt_(prompt),
        a_(ask.attention.tilt(ask.z)),
        reference_(reference(ask, prompt, a_)),
        parts_(part_names(prompt).size()) {}

  [[nodiscard]] const Vector& a() const { return a_; }
  [[nodiscard]] const Reference& limit() const { return reference_; }
  [[nodiscard]] std::size_t part_of_group(std::size_t k) const {
    return static_cast<std::size_t>(prompt_.given.rows()) + k;
  }
  [[nodiscard]] Piece token(const VectorView& z, double bias, std::size_t part) const {
    return {a_.dot(z) + bias, 1, z - reference_.m, part};
  }

  [[nodiscard]] std::vector<Piece> fixed(const PromptLayout& at) const {
    std::vector<Piece> out;
    for (Index i = 0; i < prompt_.given.rows(); ++i) {
      if (at.given[i] == -kInfinity) continue;
      out.push_back(
          token(prompt_.given.row(i).transpose(), at.given[i], static_cast<std::size_t>(i)));
    }
    std::size_t part = part_of_group(prompt_.groups.size());
    if (prompt_.include_query) out.push_back(token(ask_.z, at.self, part++));
    for (const double logit : prompt_.sink_logits) {
      if (logit > -kInfinity) out.push_back({logit, 1, -reference_.m, part});
      ++part;
    }
    return out;
  }

  [[nodiscard]] PromptError error(std::vector<Piece> pieces) const {
    const Softmax softmax(std::move(pieces), a_.size());
    Matrix VdC;
    if (ask_.covariance()) VdC = ask_.attention.V() * (softmax.covariance() - reference_.C);
    return {softmax.mean(), VdC, softmax.weights2(), softmax.weights(parts_)};
  }

 private:
  const Question& ask_;
  const Prompt& prompt_;
  Vector a_;
  Reference reference_;
  std::size_t parts_;
};

// Token j of a group is the one with j tokens of the group behind it, so that shorter prompts hold
// the first tokens of longer ones.
Table direct_prompt_errors(const Question& ask, const Prompt& prompt, std::int64_t replicates,
                           const Stream& stream) {
  const PromptPieces pieces(ask, prompt);
  const double slope = prompt.bias.kind == BiasKind::alibi ? prompt.bias.slope : 0;
  std::vector<PromptLayout> layouts;
  std::vector<std::int64_t> most(prompt.groups.size(), 0);
  for (const std::int64_t L : ask.lengths) {
    layouts.push_back(layout(prompt, L));
    std::vector<std::int64_t> used(prompt.groups.size(), 0);
    for (const PromptRun& run : layouts.back().runs) used[run.group] += run.count;
    for (std::size_t k = 0; k < used.size(); ++k) most[k] = std::max(most[k], used[k]);
  }
  double bytes = 0;
  for (const std::int64_t n : most) {
    bytes += static_cast<double>(n) * static_cast<double>(prompt.dim()) * 2 * sizeof(double);
  }
  if (bytes > kMaxDirectBytes) {
    throw CapabilityError("direct: a prompt of " + std::to_string(ask.lengths.back()) +
                          " whole tokens does not fit in memory; the exact engine serves laws with "
                          "a score law at this length");
  }
  return replicate_errors(ask, replicates, [&](std::int64_t r) {
    const Stream own = stream.split(static_cast<std::uint64_t>(r));
    std::vector<Matrix> tokens(prompt.groups.size());
    for (std::size_t k = 0; k < tokens.size(); ++k) {
      if (most[k] > 0) tokens[k] = prompt.groups[k].mu.sample(own.split(k), most[k]).tokens();
    }
    std::vector<PromptError> errors;
    for (const PromptLayout& at : layouts) {
      std::vector<Piece> all = pieces.fixed(at);
      std::vector<std::int64_t> next(prompt.groups.size(), 0);
      for (const PromptRun& run : at.runs) {
        for (std::int64_t l = 0; l < run.count; ++l) {
          const double bias = run.bias - slope * static_cast<double>(run.from + l);
          all.push_back(pieces.token(tokens[run.group].row(next[run.group]++).transpose(), bias,
                                     pieces.part_of_group(run.group)));
        }
      }
      errors.push_back(pieces.error(std::move(all)));
    }
    return errors;
  });
}

// Runs of one law are drawn as sums, with log sum e^s as their log-weight.
Table sampled_prompt_errors(const Question& ask, const Prompt& prompt, std::int64_t replicates,
                            const Stream& stream) {
  const PromptPieces pieces(ask, prompt);
  std::vector<SampledPrompt> groups;
  for (const PromptGroup& group : prompt.groups) {
    groups.emplace_back(*gaussian_mixture_law(group.mu), pieces.a(), Matrix(prompt.dim(), 0));
  }
  return replicate_errors(ask, replicates, [&](std::int64_t r) {
    const Stream own = stream.split(static_cast<std::uint64_t>(r));
    std::vector<PromptError> errors;
    for (std::size_t l = 0; l < ask.lengths.size(); ++l) {
      const PromptLayout at = layout(prompt, ask.lengths[l]);
      std::vector<Piece> all = pieces.fixed(at);
      for (std::size_t k = 0; k < at.runs.size(); ++k) {
        const PromptRun& run = at.runs[k];
        const std::int64_t counts[] = {run.count};
        const SampledDraw d = groups[run.group].draw(counts, own.split(l).split(k)).front();
        all.push_back({d.log_total + run.bias, d.weights2, d.zbar - pieces.limit().m,
                       pieces.part_of_group(run.group)});
      }
      errors.push_back(pieces.error(std::move(all)));
    }
    return errors;
  });
}

}  // namespace

Table exact_prompt_errors(const Question& ask, const Prompt& prompt) {
  ExactPrompt exact(prompt, ask.attention, ask.z);
  Table table(ask.metrics.size());
  for (const std::int64_t L : ask.lengths) {
    const double weights2 = 1 / exact.effective_sample_size(Length(L));
    std::vector<double> weights;
    if (!prompt.is_plain()) {
      const Vector w = exact.weights(Length(L));
      weights.assign(w.begin(), w.end());
    }
    for (std::size_t k = 0; k < ask.metrics.size(); ++k) {
      const ErrorParts parts = exact.error_parts(ask.metrics[k], Length(L));
      table[k].push_back(
          {.value = parts.total(), .bias2 = parts.bias2, .weights2 = weights2, .weights = weights});
    }
  }
  return table;
}

Table drawn_prompt_errors(const Question& ask, const Prompt& prompt, Engine engine,
                          std::int64_t replicates, const Stream& stream) {
  if (engine == Engine::sampled) return sampled_prompt_errors(ask, prompt, replicates, stream);
  return direct_prompt_errors(ask, prompt, replicates, stream);
}

}  // namespace esscher::detail
