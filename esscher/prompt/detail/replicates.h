// Errors of sampled prompts: what one prompt says at every length, summed over replicates in blocks
// that are merged in order. The engines of prompt/errors.cc and prompt/prompt_errors.cc share it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "esscher/base/parallel.h"
#include "esscher/base/stop.h"
#include "esscher/estimate/moments.h"
#include "esscher/prompt/errors.h"

namespace esscher::detail {

using Table = std::vector<std::vector<QueryError>>;

// What is asked about one query.
struct Question {
  const AnyMeasure& mu;
  const Attention& attention;
  VectorView z;
  std::vector<Metric> metrics;
  std::vector<std::int64_t> lengths;
  // Errors are about 0 instead of the limit, and QueryError::output is told: averages of T_hat.
  bool about_zero = false;

  [[nodiscard]] bool covariance() const {
    return std::any_of(metrics.begin(), metrics.end(), reads_covariance);
  }
};

// What one prompt says at one length.
struct PromptError {
  Vector dm;   // zbar - m_a [d]
  Matrix VdC;  // V (Chat - C_a) [dv,d]; empty where no metric reads it
  double weights2 = 0;
  Vector weights = {};  // of each part of the prompt; empty for a plain one
};

// A metric at one query: the square of its error from what a prompt says.
struct MetricAtQuery {
  MetricForm form;
  double factor;

  [[nodiscard]] double square(const Vector& dm, const Matrix& VdC) const {
    return factor * (form.of_covariance ? form.covariance_norm2(VdC) : form.mean_norm2(dm));
  }
};

inline std::vector<MetricAtQuery> at_query(const Question& ask) {
  std::vector<MetricAtQuery> out;
  for (Metric metric : ask.metrics) {
    const MetricForm form = metric_form(metric, ask.attention);
    out.push_back({form, form.factor(ask.z)});
  }
  return out;
}

// Sums over prompts.
struct PromptSums {
  std::vector<CoMoments> square;    // per metric, over lengths
  std::vector<PromptError> errors;  // per length
  std::vector<CoMoments> output;    // per length, of V dm; only where it is asked for

  void add_output(const Matrix& V, const std::vector<PromptError>& prompt) {
    output.resize(prompt.size());
    for (std::size_t i = 0; i < prompt.size(); ++i) output[i].add(V * prompt[i].dm);
  }
  void add(const std::vector<MetricAtQuery>& metrics, const std::vector<PromptError>& prompt) {
    square.resize(metrics.size());
    Vector squares(static_cast<Index>(prompt.size()));
    for (std::size_t k = 0; k < metrics.size(); ++k) {
      for (std::size_t i = 0; i < prompt.size(); ++i) {
        squares[static_cast<Index>(i)] = metrics[k].square(prompt[i].dm, prompt[i].VdC);
      }
      square[k].add(squares);
    }
    add(prompt);
  }
  void merge(const PromptSums& other) {
    square.resize(other.square.size());
    for (std::size_t k = 0; k < square.size(); ++k) square[k].merge(other.square[k]);
    output.resize(other.output.size());
    for (std::size_t i = 0; i < output.size(); ++i) output[i].merge(other.output[i]);
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
      errors[i].weights += more[i].weights;
    }
  }
};

inline QueryError error_of(const MetricAtQuery& metric, const CoMoments& square,
                           const PromptError& sum, Index length) {
  const double R = static_cast<double>(square.count());
  QueryError e{.value = square.mean()[length], .weights2 = sum.weights2 / R};
  const Vector weights = sum.weights / R;
  e.weights.assign(weights.begin(), weights.end());
  if (square.count() < 2) return e;
  const Matrix cov = square.covariance_of_mean();
  e.std_error = std::sqrt(cov(length, length));
  e.bias2 = (R * metric.square(sum.dm / R, sum.VdC / R) - e.value) / (R - 1);
  e.cov.assign(cov.row(length).begin(), cov.row(length).begin() + length + 1);
  return e;
}

// draw(r) -> one PromptError per length. Blocks of replicates run in parallel and merge in order.
template <class Draw>
Table replicate_errors(const Question& ask, std::int64_t replicates, const Draw& draw) {
  constexpr std::int64_t kReplicates = 16;  // per block
  const std::vector<MetricAtQuery> metrics = at_query(ask);
  const std::int64_t blocks = (replicates + kReplicates - 1) / kReplicates;
  std::vector<PromptSums> sums(static_cast<std::size_t>(blocks));
  parallel_for(blocks, [&](std::int64_t b) {
    for (std::int64_t r = b * kReplicates; r < std::min(replicates, (b + 1) * kReplicates); ++r) {
      check_stop();  // sixteen long prompts take seconds
      const std::vector<PromptError> prompt = draw(r);
      PromptSums& block = sums[static_cast<std::size_t>(b)];
      block.add(metrics, prompt);
      if (ask.about_zero) block.add_output(ask.attention.V(), prompt);
    }
  });
  PromptSums all;
  for (const PromptSums& block : sums) all.merge(block);
  Table table(metrics.size());
  for (std::size_t k = 0; k < metrics.size(); ++k) {
    for (std::size_t l = 0; l < all.errors.size(); ++l) {
      table[k].push_back(error_of(metrics[k], all.square[k], all.errors[l], static_cast<Index>(l)));
      if (!ask.about_zero) continue;
      table[k].back().output = all.output[l].mean();
      table[k].back().output_error = all.output[l].covariance_of_mean().diagonal().cwiseSqrt();
    }
  }
  return table;
}

// Whole prompts beyond this are a sign that a cheaper engine was meant.
inline constexpr double kMaxDirectBytes = 4e9;

// Prompts by score laws, and prompts of several parts drawn by the direct or sampled engine
// (prompt/prompt_errors.cc). ask.mu is the limit of the prompt.
Table exact_prompt_errors(const Question& ask, const Prompt& prompt);
Table drawn_prompt_errors(const Question& ask, const Prompt& prompt, Engine engine,
                          std::int64_t replicates, const Stream& stream);

}  // namespace esscher::detail
