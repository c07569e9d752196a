#include "esscher/risk/shift.h"

#include <charconv>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/base/suggest.h"

namespace esscher {

std::string TaskShift::text() const {
  return std::string(name(kind)) + (kind == ShiftKind::noise ? " + " : " x ") + brief(by, 6);
}

TaskShift parse_shift(std::string_view text) {
  const std::vector<std::string> kinds = enum_words<ShiftKind>();
  const std::size_t sign = text.find('=');
  if (sign == std::string_view::npos) {
    throw_argument("shift", "shift", "\"" + std::string(text) + "\"",
                   "a kind and a number, e.g. covariance=4");
  }
  const std::string_view word = text.substr(0, sign), number = text.substr(sign + 1);
  TaskShift out;
  for (const std::string& known : kinds) {
    if (known == word) out.kind = parse_enum<ShiftKind>(known);
  }
  if (name(out.kind) != word) {
    throw_argument("shift", "shift", "\"" + std::string(text) + "\"",
                   "a kind of shift, " + suggest(word, kinds));
  }
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), out.by);
  if (error != std::errc() || end != number.data() + number.size() || !(out.by > 0) ||
      !std::isfinite(out.by)) {
    throw_argument("shift", "shift", "\"" + std::string(text) + "\"",
                   "a number > 0 behind " + std::string(word) + "=");
  }
  return out;
}

LinearRegressionTask shifted(LinearRegressionTask task, const TaskShift& shift) {
  if (!(shift.by > 0 && std::isfinite(shift.by))) {
    throw_argument("shift", std::string(name(shift.kind)), to_text(shift.by), "a number > 0");
  }
  switch (shift.kind) {
    case ShiftKind::covariance:
      task.prompt_cov *= shift.by;
      task.query_cov *= shift.by;
      break;
    case ShiftKind::prompt: task.prompt_cov *= shift.by; break;
    case ShiftKind::query: task.query_cov *= shift.by; break;
    case ShiftKind::task: task.task_variance *= shift.by; break;
    case ShiftKind::noise: task.noise_variance += shift.by; break;
  }
  return task;
}

}  // namespace esscher
