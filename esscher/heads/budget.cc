#include "esscher/heads/budget.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "esscher/base/number_text.h"
#include "esscher/base/parallel.h"
#include "esscher/estimate/quantile.h"
#include "esscher/heads/detail/ratio.h"

namespace esscher {
namespace {

constexpr Index kFewestQueries = 8;

// At most `most` evenly spaced numbers of [first, last).
std::vector<Index> spaced(Index first, Index last, Index most) {
  const Index count = std::min(last - first, most);
  std::vector<Index> out;
  for (Index i = 0; i < count; ++i) out.push_back(first + i * (last - first) / count);
  return out;
}

Matrix queries_of(const Head& head, const std::vector<Index>& which) {
  Matrix out(static_cast<Index>(which.size()), head.dk);
  for (std::size_t i = 0; i < which.size(); ++i) {
    out.row(static_cast<Index>(i)) = head.scale * head.Q(which[i], 1).row(0);
  }
  return out;
}

// What a method leaves on the test queries of one split.
struct Left {
  Index numbers = 0, multiply_adds = 0;
  std::vector<double> errors;
};

struct Split {
  CompressInput input;
  Matrix test;     // [m,dk]
  Matrix outputs;  // [m,dv]
  std::vector<double> norms, signals;
};

Split split_of(const Head& head, const QuerySplit& queries, Index sinks) {
  const Index n = std::min(kBudgetKeys, head.prompt_end(queries.test.back()));
  Split out{.input = {.keys = head.K(0, n),
                      .values = head.V(0, n),
                      .calibration = queries_of(head, queries.calibration),
                      .sinks = sinks},
            .test = queries_of(head, queries.test),
            .outputs = {},
            .norms = {},
            .signals = {}};
  const Vector mean = out.input.values.colwise().mean();
  out.outputs = Matrix(out.test.rows(), head.dv);
  for (Index i = 0; i < out.test.rows(); ++i) {
    const Vector s = out.input.keys * out.test.row(i).transpose();
    const Vector w = (s.array() - s.maxCoeff()).exp();
    const Vector T = out.input.values.transpose() * w / w.sum();
    out.outputs.row(i) = T.transpose();
    out.norms.push_back(T.norm());
    out.signals.push_back((T - mean).norm());
  }
  return out;
}

std::optional<Left> left_by(Compression method, const Split& split, Index numbers,
                            const Stream& stream) {
  const std::optional<Compressed> made = compress(method, split.input, numbers, stream);
  if (!made) return std::nullopt;
  Left out{.numbers = made->numbers, .multiply_adds = made->multiply_adds, .errors = {}};
  for (Index i = 0; i < split.test.rows(); ++i) {
    const Vector T = split.outputs.row(i);
    out.errors.push_back((T - made->output(split.test.row(i).transpose())).norm());
  }
  return out;
}

// Joins what one method leaves on all splits; none unless it exists on each.
std::optional<BudgetRow> joined(Index budget, Compression method, const std::vector<Split>& splits,
                                const std::vector<std::optional<Left>>& parts) {
  BudgetRow row{.budget = budget, .method = method, .calibrated = is_calibrated(method)};
  std::vector<double> errors, norms, signals, ratios;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    if (!parts[i]) return std::nullopt;
    row.numbers = std::max(row.numbers, parts[i]->numbers);
    row.multiply_adds = std::max(row.multiply_adds, parts[i]->multiply_adds);
    for (std::size_t j = 0; j < parts[i]->errors.size(); ++j) {
      errors.push_back(parts[i]->errors[j]);
      norms.push_back(splits[i].norms[j]);
      signals.push_back(splits[i].signals[j]);
      if (signals.back() > 0) ratios.push_back(errors.back() / signals.back());
    }
  }
  row.lin = median_ratio(errors, norms, norms);
  row.lin_c = median_ratio(errors, signals, norms);
  row.lin_c_std_error = median_estimate(ratios, Engine::direct).std_error;
  return row;
}

// Nothing where few queries do not tell it.
std::string spread_text(double std_error) {
  return std::isfinite(std_error) ? " ± " + brief(std_error, 1) : "";
}

void mark(std::vector<BudgetRow>& rows) {
  for (BudgetRow& row : rows) {
    // Of equal errors the smaller state wins, of equal states the method that is named first.
    const auto beats = [&](const BudgetRow& other) {
      return std::tuple(other.lin_c, other.numbers, other.method) <
             std::tuple(row.lin_c, row.numbers, row.method);
    };
    row.best = std::none_of(rows.begin(), rows.end(), [&](const BudgetRow& other) {
      return other.budget == row.budget && beats(other);
    });
    row.pareto = std::none_of(rows.begin(), rows.end(), [&](const BudgetRow& other) {
      return other.numbers <= row.numbers && other.lin_c < row.lin_c;
    });
  }
}

}  // namespace

std::vector<QuerySplit> query_splits(const Head& head, Index gap) {
  const Index m = head.n_queries;
  const Index between = gap >= 0 ? gap : std::min<Index>(64, m / 8);
  std::vector<QuerySplit> out;
  if (m < kFewestQueries + between) return out;
  if (!head.has_whole_text()) {
    const Index middle = (m - between) / 2;
    out.push_back({.calibration = spaced(0, middle, kBudgetCalibration),
                   .test = spaced(middle + between, m, kBudgetTests)});
    return out;
  }
  const Index last = std::min(m, kBudgetKeys);
  for (const Index position : spaced(last / 2, last, kBudgetPrompts)) {
    const Index end = position - between;
    if (end < kFewestQueries / 2) continue;
    const Index begin = std::max<Index>(0, end - 4 * kBudgetCalibration);
    out.push_back({.calibration = spaced(begin, end, kBudgetCalibration), .test = {position}});
  }
  return out;
}

std::vector<BudgetRow> budget_rows(const Head& head, const std::vector<Index>& budgets, Index gap,
                                   Index sinks, const Stream& stream) {
  std::vector<BudgetRow> rows;
  if (!head.rules.none()) return rows;
  const std::vector<QuerySplit> queries = query_splits(head, gap);
  if (queries.empty()) return rows;
  std::vector<Split> splits;
  for (const QuerySplit& one : queries) splits.push_back(split_of(head, one, sinks));
  for (const Index budget : budgets) {
    for (const auto& [method, word] : enum_names(Compression{}).table) {
      std::vector<std::optional<Left>> parts(splits.size());
      parallel_for(static_cast<std::int64_t>(splits.size()), [&, way = method](std::int64_t i) {
        const Stream own = stream.split(static_cast<std::uint64_t>(way))
                               .split(static_cast<std::uint64_t>(budget))
                               .split(static_cast<std::uint64_t>(i));
        const auto at = static_cast<std::size_t>(i);
        parts[at] = left_by(way, splits[at], budget * (head.dk + head.dv), own);
      });
      const auto row = joined(budget, method, splits, parts);
      if (row) rows.push_back(*row);
    }
  }
  mark(rows);
  return rows;
}

std::string budget_verdict(const std::vector<BudgetRow>& rows, double tolerance,
                           Index full_numbers) {
  if (rows.empty()) return "not compared at equal memory: too few queries, or a head with rules";
  const BudgetRow* cheapest = nullptr;
  std::string winners;
  for (const BudgetRow& row : rows) {
    const bool useful = row.lin_c <= tolerance && 2 * row.numbers <= full_numbers;
    const auto cost = [](const BudgetRow& r) { return std::pair(r.numbers, r.multiply_adds); };
    if (useful && (cheapest == nullptr || cost(row) < cost(*cheapest))) cheapest = &row;
    if (!row.best) continue;
    winners += (winners.empty() ? "in the memory of " : ", of ") + std::to_string(row.budget) +
               (winners.empty() ? " keys " : " ") + words_of(row.method) + " (error " +
               brief(row.lin_c, 2) + spread_text(row.lin_c_std_error) + ")";
  }
  const std::string best = "best on unseen queries: " + winners;
  if (cheapest == nullptr) {
    return best + "; none is within tolerance in half of the numbers of the prompt";
  }
  return best + "; cheapest within tolerance: " + words_of(cheapest->method) + ", " +
         std::to_string(cheapest->numbers) + " numbers and " +
         std::to_string(cheapest->multiply_adds) + " multiply-adds instead of " +
         std::to_string(full_numbers) + " each";
}

}  // namespace esscher
