// What scores are multiplied by as the prompt grows. The factor at length n, with n0 the length of
// training and c a coefficient:
//
//   constant   1
//   sqrt-log   c sqrt(log n)                              c = 1
//   log        c log n                                    c = 1
//   ssmax      c log n                                    c = 0.43, the size that was learned
//   qwen       max(1, log n / log n0)
//   yarn       (c log(n/n0) + 1)^2, 1 up to n0            c = 0.1
//   llama4     1 + c log(floor((n+1)/n0) + 1)             c = 0.1, n0 = 8192
//   longrope   1 + log(n/n0)/log n0, 1 up to n0: the square of what queries and keys are multiplied
//              by, which is qwen's factor
//   table      pairs (n, factor), linear in log n between them and constant beyond
//   formula    an expression in n (scaling/expression.h)
//
// Sources are in docs/references.md.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "esscher/base/enum_names.h"

namespace esscher {

enum class ScheduleKind {
  constant,
  sqrt_log,
  log,
  ssmax,
  qwen,
  yarn,
  llama4,
  longrope,
  table,
  formula
};

constexpr auto enum_names(ScheduleKind) {
  return EnumNames<ScheduleKind, 10>{"schedule",
                                     {{{ScheduleKind::constant, "constant"},
                                       {ScheduleKind::sqrt_log, "sqrt-log"},
                                       {ScheduleKind::log, "log"},
                                       {ScheduleKind::ssmax, "ssmax"},
                                       {ScheduleKind::qwen, "qwen"},
                                       {ScheduleKind::yarn, "yarn"},
                                       {ScheduleKind::llama4, "llama4"},
                                       {ScheduleKind::longrope, "longrope"},
                                       {ScheduleKind::table, "table"},
                                       {ScheduleKind::formula, "formula"}}}};
}

// Which kinds have the coefficient c, and which the length of training n0.
bool has_coefficient(ScheduleKind kind);
bool has_training_length(ScheduleKind kind);

// The factor of a published form at n >= 1 tokens, for any c; kinds without a formula (table, formula) are
// an ArgumentError.
double published_factor(ScheduleKind kind, double c, double n0, double n);

struct SchedulePoint {
  double n = 1;
  double factor = 1;
};

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::constant;
  std::optional<double> c = {};      // the default of the kind if absent
  std::optional<double> train = {};  // n0 > 1; 4096 if absent, 8192 for llama4
  std::vector<SchedulePoint> table = {};
  std::string formula = {};
};

class Schedule {
 public:
  // Throws ArgumentError: a coefficient that is no positive number, a table that does not grow in n or
  // has factors below 0, a formula that cannot be read, an option that the kind does not have.
  explicit Schedule(ScheduleOptions options);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] ScheduleKind kind() const { return options_.kind; }
  // The factor at n >= 1 tokens. ArgumentError unless it is a number >= 0.
  [[nodiscard]] double factor(double n) const;

 private:
  ScheduleOptions options_;
  double c_ = 1;
  double train_ = 1;
  std::function<double(double)> formula_ = {};
  std::string name_;
};

}  // namespace esscher
