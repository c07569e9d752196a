// A model that was trained on one task and is tested on another: what may have changed in between.
//
//   covariance = x   prompt_cov and query_cov are multiplied by x
//   prompt = x       prompt_cov alone
//   query = x        query_cov alone
//   task = x         task_variance is multiplied by x
//   noise = x        x is added to noise_variance
#pragma once

#include <string>
#include <string_view>

#include "esscher/base/enum_names.h"
#include "esscher/task/regression.h"

namespace esscher {

enum class ShiftKind { covariance, prompt, query, task, noise };

constexpr auto enum_names(ShiftKind) {
  return EnumNames<ShiftKind, 5>{"shift",
                                 {{{ShiftKind::covariance, "covariance"},
                                   {ShiftKind::prompt, "prompt"},
                                   {ShiftKind::query, "query"},
                                   {ShiftKind::task, "task"},
                                   {ShiftKind::noise, "noise"}}}};
}

struct TaskShift {
  ShiftKind kind = ShiftKind::covariance;
  double by = 1;

  [[nodiscard]] std::string text() const;  // "covariance x 4", "noise + 0.5"
};

// "covariance=4". Throws ArgumentError naming the text and the kinds there are.
TaskShift parse_shift(std::string_view text);

// Throws ArgumentError unless the shift is by a number > 0.
LinearRegressionTask shifted(LinearRegressionTask task, const TaskShift& shift);

}  // namespace esscher
