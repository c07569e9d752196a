#include "esscher/scaling/schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/scaling/expression.h"

namespace esscher {
namespace {

double default_coefficient(ScheduleKind kind) {
  if (kind == ScheduleKind::ssmax) return 0.43;
  return kind == ScheduleKind::yarn || kind == ScheduleKind::llama4 ? 0.1 : 1;
}

void check_table(const std::vector<SchedulePoint>& table) {
  if (table.empty()) throw_argument("schedule", "table", "nothing", "pairs of length and factor");
  for (std::size_t i = 0; i < table.size(); ++i) {
    const SchedulePoint& p = table[i];
    if (!(p.n >= 1 && std::isfinite(p.n)) || (i > 0 && !(p.n > table[i - 1].n))) {
      throw_argument("schedule", "table", to_text(p.n), "lengths >= 1 that grow");
    }
    if (!(p.factor >= 0 && std::isfinite(p.factor))) {
      throw_argument("schedule", "table", to_text(p.factor), "factors >= 0");
    }
  }
}

// Linear in log n between the points, constant beyond them.
double between(const std::vector<SchedulePoint>& table, double log_n) {
  const auto right = std::find_if(table.begin(), table.end(),
                                  [&](const SchedulePoint& p) { return std::log(p.n) >= log_n; });
  if (right == table.begin()) return table.front().factor;
  if (right == table.end()) return table.back().factor;
  const SchedulePoint &a = *(right - 1), &b = *right;
  const double t = (log_n - std::log(a.n)) / (std::log(b.n) - std::log(a.n));
  return a.factor + t * (b.factor - a.factor);
}

}  // namespace

bool has_coefficient(ScheduleKind kind) {
  return kind == ScheduleKind::sqrt_log || kind == ScheduleKind::log ||
         kind == ScheduleKind::ssmax || kind == ScheduleKind::yarn || kind == ScheduleKind::llama4;
}

bool has_training_length(ScheduleKind kind) {
  return kind == ScheduleKind::qwen || kind == ScheduleKind::yarn || kind == ScheduleKind::llama4 ||
         kind == ScheduleKind::longrope;
}

double published_factor(ScheduleKind kind, double c, double n0, double n) {
  const double log_n = std::log(n), log_train = std::log(n0);
  const double grown = std::max(0.0, log_n - log_train);
  switch (kind) {
    case ScheduleKind::constant: return 1;
    case ScheduleKind::sqrt_log: return c * std::sqrt(log_n);
    case ScheduleKind::log:
    case ScheduleKind::ssmax: return c * log_n;
    case ScheduleKind::qwen:
    case ScheduleKind::longrope: return 1 + grown / log_train;
    case ScheduleKind::yarn: return (c * grown + 1) * (c * grown + 1);
    case ScheduleKind::llama4: return 1 + c * std::log1p(std::floor((n + 1) / n0));
    case ScheduleKind::table:
    case ScheduleKind::formula: break;
  }
  throw_argument("schedule", "kind", std::string(name(kind)), "a published form");
}

Schedule::Schedule(ScheduleOptions options) : options_(std::move(options)) {
  const ScheduleKind kind = options_.kind;
  const std::string word(esscher::name(kind));
  if (options_.c && !has_coefficient(kind)) {
    throw_argument("schedule", "c", to_text(*options_.c), "no coefficient, " + word + " has none");
  }
  if (options_.train && !has_training_length(kind)) {
    throw_argument("schedule", "train", to_text(*options_.train),
                   "no length of training, " + word + " has none");
  }
  c_ = options_.c.value_or(default_coefficient(kind));
  if (!(c_ > 0 && std::isfinite(c_))) throw_argument("schedule", "c", to_text(c_), "a number > 0");
  train_ = options_.train.value_or(kind == ScheduleKind::llama4 ? 8192 : 4096);
  if (!(train_ > 1 && std::isfinite(train_))) {
    throw_argument("schedule", "train", to_text(train_), "a length > 1");
  }
  if (kind == ScheduleKind::table) check_table(options_.table);
  if (kind == ScheduleKind::formula) formula_ = parse_expression(options_.formula);
  name_ = word;
  if (kind == ScheduleKind::formula) name_ = options_.formula;
  if (has_coefficient(kind)) name_ += ", c = " + brief(c_);
  if (has_training_length(kind)) name_ += ", n0 = " + brief(train_);
}

double Schedule::factor(double n) const {
  const ScheduleKind kind = options_.kind;
  const double out = kind == ScheduleKind::table     ? between(options_.table, std::log(n))
                     : kind == ScheduleKind::formula ? formula_(n)
                                                     : published_factor(kind, c_, train_, n);
  if (!(out >= 0 && std::isfinite(out))) {
    throw_argument("schedule", name_, to_text(out), "a factor >= 0 at n = " + brief(n));
  }
  return out;
}

}  // namespace esscher
