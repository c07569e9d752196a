#include "esscher/heads/verdict.h"

#include <cmath>

#include "esscher/base/number_text.h"

namespace esscher {
namespace {

// An error up to this multiple of the control is explained by the length of the prompt.
constexpr double kNearControl = 1.5;
// A surrogate that leaves at most this share of |T - Vbar| unexplained is worth using.
constexpr double kUseful = 0.5;
// A mixture must leave less than this share of what one component leaves.
constexpr double kClearlyBetter = 0.9;
constexpr double kHeavyKurtosis = 6.0;
constexpr double kMostQueries = 0.5;

std::string text(double x) { return brief(x, 3); }

// What is in the way when the keys are not Gaussian.
std::string cause(const HeadEvidence& head) {
  if (head.dominant > kMostQueries) {
    return "one key takes more than half of the weight for " + text(100 * head.dominant) +
           " % of the queries";
  }
  if (head.kurtosis > kHeavyKurtosis) {
    return "heavy-tailed keys (kurtosis of the scores " + text(head.kurtosis) + ", Gaussian 3)";
  }
  return "keys are not Gaussian (kurtosis of the scores " + text(head.kurtosis) + ")";
}

// What the best mixture would leave on prompts of its own.
std::string own_prompts(const std::optional<MixtureEvidence>& best) {
  if (!best || !best->control) return "";
  return "; prompts drawn from that mixture would leave " + text(*best->control);
}

HeadJudgement judge_short(const HeadEvidence& head) {
  const std::string reason = "error " + text(head.error) + " is near what " +
                             std::to_string(head.n) + " Gaussian keys would show (" +
                             text(head.control) + "); the limit ";
  if (head.linear_from.is_infinite()) {
    return {.verdict = HeadVerdict::too_short,
            .words = "too short to say",
            .reason = reason + "is not within tolerance before L = 10^15"};
  }
  return {.verdict = HeadVerdict::linear_from,
          .words = "linear from L = " + head.linear_from.text(),
          .reason = reason + "holds within tolerance from L = " + head.linear_from.text()};
}

HeadJudgement judge_shape(const HeadEvidence& head) {
  const std::optional<MixtureEvidence>& best = head.mixture;
  const std::string gap = "error " + text(head.error) + " against " + text(head.control) +
                          " for Gaussian keys: " + cause(head);
  if (best && best->unseen <= kUseful && best->unseen < kClearlyBetter * head.unseen) {
    const std::string k = std::to_string(best->k);
    return {.verdict = HeadVerdict::needs_components,
            .words = "needs " + k + " components",
            .reason = gap + "; a mixture of " + k + " leaves " + text(best->unseen) +
                      " on unseen keys (one component " + text(head.unseen) + ")" +
                      own_prompts(best)};
  }
  if (head.error <= kUseful) {
    const std::string mixture =
        best ? ", and a mixture of " + std::to_string(best->k) + " leaves " + text(best->unseen)
             : "";
    return {.verdict = HeadVerdict::linear_within,
            .words = "linear within " + text(std::ceil(100 * head.error)) + " %",
            .reason = gap + "; on unseen keys one component leaves " + text(head.unseen) + mixture +
                      own_prompts(best)};
  }
  return {.verdict = HeadVerdict::not_linearisable,
          .words = "not linearisable",
          .reason = gap + (best ? "; a mixture of " + std::to_string(best->k) + " still leaves " +
                                      text(best->unseen) + " on unseen keys" + own_prompts(best)
                                : std::string("; no mixture could be judged on unseen keys"))};
}

}  // namespace

HeadJudgement judge(const HeadEvidence& head, double tolerance) {
  if (head.error <= tolerance) {
    return {.verdict = HeadVerdict::linear_here,
            .words = "linear here",
            .reason = "error " + text(head.error) + " at n = " + std::to_string(head.n) +
                      ", control " + text(head.control)};
  }
  if (head.error <= kNearControl * head.control && head.dominant <= kMostQueries) {
    return judge_short(head);
  }
  return judge_shape(head);
}

std::string linear_from_text(Length linear_from) {
  return linear_from.is_infinite() ? "not before 10^15" : linear_from.text();
}

}  // namespace esscher
