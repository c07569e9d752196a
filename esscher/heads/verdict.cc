#include "esscher/heads/verdict.h"

#include <cmath>
#include <cstdio>

namespace esscher {
namespace {

// An error up to this multiple of the control is explained by the length of the prompt.
constexpr double kNearControl = 1.5;
// A surrogate that leaves at most this share of |T - Vbar| unexplained is worth using.
constexpr double kUseful = 0.5;
constexpr double kHeavyKurtosis = 6.0;

std::string short_number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

std::string from_length(std::int64_t L) {
  return L == kNeverLinear ? "not before 10^15" : std::to_string(L);
}

// What is in the way when the keys are not Gaussian.
std::string cause(const HeadDiagnosis& head) {
  if (head.dominant > 0.5) {
    return "one key takes more than half of the weight for " + short_number(100 * head.dominant) +
           " % of the queries";
  }
  if (head.kurtosis > kHeavyKurtosis) {
    return "heavy-tailed keys (kurtosis of the scores " + short_number(head.kurtosis) +
           ", Gaussian 3)";
  }
  return "keys are not Gaussian (kurtosis of the scores " + short_number(head.kurtosis) + ")";
}

// What the best mixture would leave on prompts of its own.
std::string own_prompts(const MixtureRow& best) {
  if (!best.control) return "";
  return "; prompts drawn from that mixture would leave " + short_number(best.control->lin_c);
}

void judge_short(HeadDiagnosis& head) {
  const bool reachable = head.linear_from != kNeverLinear;
  head.verdict =
      reachable ? "linear from L = " + std::to_string(head.linear_from) : "too short to say";
  head.reason = "error " + short_number(head.gaussian.lin_c) + " is what " +
                std::to_string(head.n) + " Gaussian keys would show (" +
                short_number(head.control_lin_c) +
                "); the limit holds within tolerance from L = " + from_length(head.linear_from);
}

void judge_shape(HeadDiagnosis& head) {
  const std::string gap = "error " + short_number(head.gaussian.lin_c) + " against " +
                          short_number(head.control_lin_c) + " for Gaussian keys: " + cause(head);
  const MixtureRow* best = best_mixture(head);
  const bool helps = best != nullptr && best->split->lin_c <= kUseful &&
                     best->split->lin_c < 0.9 * head.gaussian_split.lin_c;
  if (helps) {
    head.verdict = "needs " + std::to_string(best->k) + " components";
    head.reason = gap + "; a mixture of " + std::to_string(best->k) + " leaves " +
                  short_number(best->split->lin_c) + " on unseen keys (one component " +
                  short_number(head.gaussian_split.lin_c) + ")" + own_prompts(*best);
    return;
  }
  if (head.gaussian.lin_c <= kUseful) {
    head.verdict = "linear within " + short_number(std::ceil(100 * head.gaussian.lin_c)) + " %";
    head.reason =
        gap + "; on unseen keys one component leaves " + short_number(head.gaussian_split.lin_c);
    if (best != nullptr) {
      head.reason += ", a mixture of " + std::to_string(best->k) + " " +
                     short_number(best->split->lin_c) + own_prompts(*best);
    }
    return;
  }
  head.verdict = "not linearisable";
  head.reason = gap + "; no mixture tried leaves less than " +
                (best == nullptr ? std::string("1") : short_number(best->split->lin_c)) +
                " on unseen keys";
  if (best != nullptr) head.reason += own_prompts(*best);
}

}  // namespace

const MixtureRow* best_mixture(const HeadDiagnosis& head) {
  const MixtureRow* best = nullptr;
  for (const MixtureRow& row : head.mixtures) {
    if (row.split && (best == nullptr || row.split->lin_c < best->split->lin_c)) best = &row;
  }
  for (const MixtureRow& row : head.mixtures) {
    if (row.split && row.split->lin_c <= 1.1 * best->split->lin_c) return &row;
  }
  return best;
}

void judge(HeadDiagnosis& head, double tolerance) {
  if (head.gaussian.lin_c <= tolerance) {
    head.verdict = "linear here";
    head.reason = "error " + short_number(head.gaussian.lin_c) +
                  " at n = " + std::to_string(head.n) + ", control " +
                  short_number(head.control_lin_c);
  } else if (head.gaussian.lin_c <= kNearControl * head.control_lin_c && head.dominant <= 0.5) {
    judge_short(head);
  } else {
    judge_shape(head);
  }
}

}  // namespace esscher
