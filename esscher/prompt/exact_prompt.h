// Finite prompts without sampling, for every prompt whose laws have a score law (prompt/prompt.h,
// measure/score_law.h, prompt/group_integrals.h). At one query z:
//
//   expected output  E[T_hat(z)], T_hat = V sum omega z' over all tokens; sinks have the value 0
//   errors           E|X_hat - X|^2 with X of the limit, in its parts bias2 and variance
//   weights          the expected weight of every part (part_names)
//   functions        the scores alone: H, M1, M2c, free energy, entropy
//
// Where the prompt has no limit, errors are about the saturation value instead: E[T_hat] as L grows
// (no_limit_reason). Metrics of the covariance (grad_u, grad_k, grad_q) need moments that score laws do
// not carry; they are refused with a CapabilityError that names the direct engine.
#pragma once

#include <map>
#include <optional>

#include "esscher/attention/attention.h"
#include "esscher/attention/metric.h"
#include "esscher/prompt/exact_gaussian.h"
#include "esscher/prompt/group_integrals.h"
#include "esscher/prompt/prompt.h"

namespace esscher {

// Whether every law that the prompt draws from has a score law.
bool has_score_laws(const Prompt& prompt);

// Functions of the scores s of all tokens with weights omega; S = sum omega s.
struct ScoreFunctions {
  double H = 0;            // E sum omega^2
  double M1 = 0;           // E S
  double M2c = 0;          // E (S - S_inf)^2, S_inf of the limit or of the saturation value
  double free_energy = 0;  // E log sum e^{b+s}, sinks included
  double entropy = 0;      // E[-sum omega log omega]
  double error = 0;        // defect of E sum omega = 1
};

// Lengths share what is computed at a query, so one object serves one thread.
class ExactPrompt {
 public:
  ExactPrompt(Prompt prompt, Attention attention, const VectorView& z);

  // [dv]; at L = infinity the limit, or the saturation value. DomainError where the limit is
  // infinite.
  Vector expected_output(Length L);
  double effective_sample_size(Length L);  // 1 / E sum omega^2
  double variance(Length L);               // E|T_hat - E T_hat|^2, also where there is no limit
  ErrorParts error_parts(Metric metric, Length L);
  Vector weights(Length L);  // [parts]
  ScoreFunctions score_functions(Length L);

 private:
  enum class Reading { output, token, score };

  // Integrals of one reading, and the centre that values are read about.
  struct Values {
    GroupIntegrals integrals;
    Matrix A;
    Vector centre;
    std::optional<Vector> saturation = {};  // E sum omega x as L grows
  };
  Values& values(Reading reading);
  GroupMoments moments(Reading reading, std::int64_t L);
  // About the limit or the saturation value.
  GroupMoments centred(Reading reading, std::int64_t L);
  [[nodiscard]] GivenTokens given_tokens(const Values& v, const PromptLayout& at) const;
  [[nodiscard]] Vector part_weights(const PromptLayout& at, const GroupMoments& m) const;

  Prompt prompt_;
  Attention attention_;
  Vector z_, a_;
  std::optional<AnyMeasure> limit_;
  std::map<Reading, Values> values_;
};

}  // namespace esscher
