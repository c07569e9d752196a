#include "esscher/heads/verdict.h"

#include <cmath>

#include "esscher/base/number_text.h"

namespace esscher {
namespace {

// An error up to this multiple of the control is explained by the length where no test was made.
constexpr double kNearControl = 1.5;
// A surrogate that leaves at most this share of |T - Vbar| unexplained is worth using.
constexpr double kUseful = 0.5;
// A mixture must leave less than this share of what one component leaves.
constexpr double kClearlyBetter = 0.9;
constexpr double kHeavyKurtosis = 6.0;
constexpr double kMostQueries = 0.5;
// The probability with which a promise that is wrong by twice the tolerance must have been seen.
constexpr double kEnoughPower = 0.9;

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

// The test reads a few queries; an error of all queries below the control is not refused, which only
// lowers the level. Where there is no test, the error may be half as large again.
bool error_refused(const HeadEvidence& head) {
  if (!head.excess) return head.error > kNearControl * head.control;
  return head.excess->refused() && head.error > head.control;
}

// The length explains the error: more than Gaussian keys would show is not seen.
bool near_control(const HeadEvidence& head) {
  return !error_refused(head) && head.dominant <= kMostQueries;
}

// Some error below 1, which the mean value has, would be refused.
bool can_refuse(const HeadEvidence& head) { return head.excess && head.excess->limit < 1; }

// What the test of the error read, and what Gaussian keys would have shown it.
std::string excess_text(const ErrorExcess& excess) {
  return std::to_string(excess.queries) + " queries on " + std::to_string(excess.keys) +
         " keys: " + text(excess.error) + ", Gaussian keys exceed " + text(excess.limit) + " in " +
         text(100 * kExcessLevel) + " % of prompts";
}

std::string near_text(const HeadEvidence& head) {
  return "error " + text(head.error) + " is not told from that of " + std::to_string(head.n) +
         " Gaussian keys (" + text(head.control) +
         (head.excess ? "; " + excess_text(*head.excess) : "") + ")";
}

// The same where the error is too large.
std::string gap_text(const HeadEvidence& head) {
  const bool told = head.excess && error_refused(head);
  return "error " + text(head.error) + " against " + text(head.control) + " for Gaussian keys" +
         (told ? " (" + excess_text(*head.excess) + ")" : "");
}

std::string departure_text(const KeyShape& shape) {
  return "the scores depart from Gaussian ones by " + text(shape.departure) +
         " (Gaussian keys exceed " + text(shape.limit) + " in " + text(100 * kShapeLevel) +
         " % of prompts)";
}

std::string times_text(const HeadEvidence& head) {
  return brief(static_cast<double>(head.linear_from.count()) / static_cast<double>(head.n), 2);
}

HeadJudgement too_short(const HeadEvidence& head, const std::string& why) {
  return {.verdict = HeadVerdict::too_short,
          .words = "too short to say",
          .reason = near_text(head) + "; " + why};
}

// The error is near the control, and no test has found the keys not Gaussian.
HeadJudgement judge_length(const HeadEvidence& head) {
  if (head.linear_from.is_infinite()) {
    return too_short(head, "the limit is not within tolerance before L = 10^15");
  }
  if (!can_refuse(head)) {
    return too_short(head,
                     "at this length no error below 1 would tell other keys from Gaussian ones");
  }
  if (!head.shape) return too_short(head, "the shape of the keys was not tested");
  const double power = head.shape->power.value_or(0);
  const std::string seen = "a limit that errs by " + text(head.shape->harm) +
                           " would have been seen with probability " + text(power);
  if (power < kEnoughPower) {
    return too_short(head, departure_text(*head.shape) + ", but " + seen + " only");
  }
  return {.verdict = HeadVerdict::linear_from,
          .words = "linear from L = " + head.linear_from.text() + " if its keys stay Gaussian",
          .reason = near_text(head) + "; " + departure_text(*head.shape) + ", and " + seen +
                    "; if the keys stay so, the limit holds within tolerance from L = " +
                    head.linear_from.text() + ", " + times_text(head) +
                    " times the length that was recorded"};
}

HeadJudgement judge_shape(const HeadEvidence& head) {
  const std::optional<MixtureEvidence>& best = head.mixture;
  const std::string gap =
      gap_text(head) + ": " + (near_control(head) ? departure_text(*head.shape) : cause(head));
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
  if (near_control(head)) {
    return too_short(head, "the keys are not Gaussian, so no length is promised: " +
                               departure_text(*head.shape));
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
  const bool refused = length_in_question(head, tolerance) && head.shape && head.shape->refused();
  return near_control(head) && !refused ? judge_length(head) : judge_shape(head);
}

bool length_in_question(const HeadEvidence& head, double tolerance) {
  return head.error > tolerance && near_control(head) && can_refuse(head) &&
         !head.linear_from.is_infinite();
}

double harm_of(double tolerance) { return std::sqrt(3.0) * tolerance; }

std::string linear_from_text(Length linear_from) {
  return linear_from.is_infinite() ? "not before 10^15" : linear_from.text();
}

}  // namespace esscher
