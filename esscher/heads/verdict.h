// The verdict on a head: an enum, the words that are printed, and the reason, from numbers alone.
//
//   error = lin_c of the Gaussian limit,   control = lin_c of Gaussian keys of the same length
//
// The error is that of Gaussian keys if it is at most the control or if a test of level 5 %
// (heads/excess.h) does not refuse it; where no test can be made, if it is at most 1.5 times the
// control.
//
//   linear_here       error <= tolerance
//   linear_from       the error is that of Gaussian keys, control reaches the tolerance at some
//                     L <= 10^15, and a test of shape (heads/shape.h) took the keys for Gaussian
//                     and would have refused, with probability 0.9, keys that err by twice the
//                     tolerance at L; the words say "if its keys stay Gaussian"
//   too_short         the error is that of Gaussian keys, but nothing can be said of a longer
//                     prompt: no such L, or an error of 1 would not be refused either, or no test of
//                     shape, or one without that power, or keys are not Gaussian and none of the
//                     next two holds
//   needs_components  keys are not Gaussian; a mixture of k leaves at most half of the signal on
//                     unseen keys, and less than 0.9 times what one component leaves there
//   linear_within     keys are not Gaussian and no mixture helps so much, but error <= 1/2
//   not_linearisable  none of these
//
// Keys are not Gaussian if either test refuses them. A key that
// takes more than half of the weight of most queries rules linear_from and too_short out.
#pragma once

#include <optional>
#include <string>

#include "esscher/base/enum_names.h"
#include "esscher/base/length.h"
#include "esscher/base/linalg.h"
#include "esscher/heads/excess.h"
#include "esscher/heads/shape.h"

namespace esscher {

enum class HeadVerdict {
  linear_here,
  linear_from,
  linear_within,
  too_short,
  needs_components,
  not_linearisable
};

constexpr auto enum_names(HeadVerdict) {
  return EnumNames<HeadVerdict, 6>{"verdict",
                                   {{{HeadVerdict::linear_here, "linear_here"},
                                     {HeadVerdict::linear_from, "linear_from"},
                                     {HeadVerdict::linear_within, "linear_within"},
                                     {HeadVerdict::too_short, "too_short"},
                                     {HeadVerdict::needs_components, "needs_components"},
                                     {HeadVerdict::not_linearisable, "not_linearisable"}}}};
}

// The best mixture on unseen keys.
struct MixtureEvidence {
  Index k = 0;
  double unseen = 0;  // its lin_c on keys that it was not fitted to
  std::optional<double> control =
      {};  // lin_c on prompts drawn from it; none out of the engine's reach
};

// The numbers that a verdict rests on, medians over queries.
struct HeadEvidence {
  Index n = 0;                              // keys
  double error = 0;                         // lin_c of the Gaussian limit
  double unseen = 0;                        // the same, fitted on half of the keys, on the others
  double control = 0;                       // lin_c of n Gaussian keys
  Length linear_from = Length::infinity();  // control is within tolerance from this length on
  double dominant = 0;                      // share of queries that one same key dominates
  double kurtosis = 3;                      // of the scores
  std::optional<MixtureEvidence> mixture = {};  // none if no mixture was judged
  std::optional<ErrorExcess> excess = {};       // none if the error was not tested
  std::optional<KeyShape> shape = {};           // none if the shape was not tested
};

struct HeadJudgement {
  HeadVerdict verdict = HeadVerdict::not_linearisable;
  // "linear from L = 12632 if its keys stay Gaussian", "needs 4 components", "linear within 31 %"
  std::string words;
  std::string reason;  // the numbers that led to it, without a full stop
};

HeadJudgement judge(const HeadEvidence& head, double tolerance);

// True if a length would be promised to Gaussian keys: only then does the verdict read the shape.
bool length_in_question(const HeadEvidence& head, double tolerance);

// The error of the limit at infinite length that makes the error at the promised length twice the
// tolerance: there the finite length alone leaves one tolerance, and the two add as squares.
double harm_of(double tolerance);

// The length as people read it: "12632", or "not before 10^15" for infinity.
std::string linear_from_text(Length linear_from);

}  // namespace esscher
