#include "esscher/heads/detail/window_study.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "esscher/base/number_text.h"
#include "esscher/estimate/quantile.h"
#include "esscher/heads/detail/ratio.h"
#include "esscher/heads/window.h"
#include "esscher/heads/window_control.h"

namespace esscher {
namespace {

constexpr Index kTypicalWindow = 16;
constexpr Index kShortest = 32;        // keys of the shortest prefix
constexpr std::size_t kControls = 16;  // queries with a control

// Errors of one window and tail over queries.
struct Errors {
  std::vector<double> errors, controls;
};

const std::vector<Tail>& one_gaussian() {
  static const std::vector<Tail> tails = {Tail::none, Tail::mean, Tail::first, Tail::gaussian,
                                          Tail::finite};
  return tails;
}

// Keys of the whole prompt pass through one window; each query is evaluated where its prompt ends.
class WindowPass {
 public:
  WindowPass(const Head& head, WindowOptions options, std::vector<Tail> tails,
             const std::vector<PromptResult>& results)
      : head_(head),
        window_(head.dk, head.dv, std::move(options)),
        tails_(std::move(tails)),
        results_(results),
        errors_(tails_.size()),
        order_(results.size()) {
    for (Errors& one : errors_) one.errors.resize(results.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t x, std::size_t y) { return results_[x].n < results_[y].n; });
    stride_ = std::max<std::size_t>(1, results.size() / kControls);
  }

  void add_chunk(const Matrix& keys, const Matrix& values) {
    const Index first = window_.count();
    Index at = 0;
    while (at < keys.rows() && next_ < order_.size()) {
      const auto end = static_cast<Index>(results_[order_[next_]].n);
      const Index stop = std::min(keys.rows(), end - first);
      push(keys.middleRows(at, stop - at), values.middleRows(at, stop - at));
      at = stop;
      while (next_ < order_.size() && static_cast<Index>(results_[order_[next_]].n) == first + at) {
        evaluate(order_[next_++]);
      }
    }
  }

  [[nodiscard]] const std::vector<Errors>& errors() const { return errors_; }

 private:
  // Heavy keys are chosen by every query of the text, each after its own key.
  void push(const MatrixView& keys, const MatrixView& values) {
    if (window_.options().heavy == 0) {
      window_.push(keys, values);
      return;
    }
    const Matrix a = head_.scale * head_.Q(window_.count(), keys.rows());
    for (Index l = 0; l < keys.rows(); ++l) {
      window_.push(keys.row(l), values.row(l));
      window_.attend(a.row(l).transpose());
    }
  }

  void evaluate(std::size_t i) {
    const PromptResult& query = results_[i];
    const WindowParts parts = window_.parts(query.a);
    const bool controlled = i % stride_ == 0 && query.signal > 1e-12 * query.norm;
    const auto expected =
        controlled ? window_expectations(parts) : std::optional<WindowExpectations>();
    for (std::size_t t = 0; t < tails_.size(); ++t) {
      const Vector surrogate = combine(tails_[t], parts);
      errors_[t].errors[i] = (query.T - surrogate).norm();
      const bool exact = controlled && !(parts.count > 0);
      if (expected) {
        errors_[t].controls.push_back(std::sqrt(window_control(parts, *expected, surrogate)) /
                                      query.signal);
      } else if (exact) {
        errors_[t].controls.push_back(0);
      }
    }
  }

  const Head& head_;
  WindowedHead window_;
  std::vector<Tail> tails_;
  const std::vector<PromptResult>& results_;
  std::vector<Errors> errors_;
  std::vector<std::size_t> order_;  // queries by the length of their prompt
  std::size_t next_ = 0;
  std::size_t stride_ = 1;
};

void run(const Head& head, const std::vector<PromptResult>& results, std::vector<WindowPass>& all) {
  double last = 0;
  for (const PromptResult& query : results) last = std::max(last, query.n);
  const auto end = static_cast<Index>(last);
  for (Index first = 0; first < end; first += kHeadChunk) {
    const Index rows = std::min(kHeadChunk, end - first);
    const Matrix keys = head.K(first, rows);
    const Matrix values = head.V(first, rows);
    for (WindowPass& pass : all) pass.add_chunk(keys, values);
  }
}

WindowRow row_of(const Head& head, const std::vector<PromptResult>& results, Index w, Tail tail,
                 Index heavy, Index components, const Errors& errors) {
  std::vector<double> norms;
  std::vector<double> signals;
  for (const PromptResult& query : results) {
    norms.push_back(query.norm);
    signals.push_back(query.signal);
  }
  WindowRow row{.w = w,
                .tail = tail,
                .lin = median_ratio(errors.errors, norms, norms),
                .lin_c = median_ratio(errors.errors, signals, norms)};
  if (!errors.controls.empty()) row.control_lin_c = median(errors.controls);
  if (heavy > 0) row.heavy = heavy;
  const Index pair = head.dk + head.dv;
  const Index weighing = heavy > 0 ? 2 * (w + heavy) : 0;  // how each exact key was weighed
  row.state = (w + heavy) * pair + weighing + tail_state(tail, head.dk, head.dv, components);
  row.multiply_adds = (w + heavy) * pair + tail_multiply_adds(tail, head.dk, head.dv, components);
  return row;
}

}  // namespace

std::vector<WindowRow> window_rows(const Head& head, const HeadOptions& options,
                                   const std::vector<PromptResult>& results,
                                   const std::optional<MixtureFit>& mixture) {
  struct Plan {
    Index w;
    std::vector<Tail> tails;
    Index heavy;
    Index components;
  };
  std::vector<Plan> plans;
  std::vector<WindowPass> passes;
  const auto add = [&](Index w, Tail tail, const std::vector<Tail>& tails, Index heavy,
                       Index components) {
    WindowOptions window{
        .window = w, .sinks = std::min(options.sinks, w), .heavy = heavy, .tail = tail};
    if (tail == Tail::mixture) window.mixture = mixture;
    if (tail == Tail::rotary) window.rotary = head.rotary;
    plans.push_back({w, tails, heavy, components});
    passes.emplace_back(head, std::move(window), tails, results);
  };
  for (const Index w : options.windows) {
    if (w >= head.n) continue;
    add(w, Tail::finite, one_gaussian(), 0, 1);
    if (mixture && head.n <= options.mixture_keys)
      add(w, Tail::mixture, {Tail::mixture}, 0, mixture->size());
    if (head.rotary) add(w, Tail::rotary, {Tail::rotary}, 0, 1);
    const bool weighed = options.heavy > 0 && head.has_whole_text();
    if (weighed && w + options.heavy < head.n) {
      add(w, Tail::finite, {Tail::finite}, options.heavy, 1);
    }
  }
  run(head, results, passes);
  std::vector<WindowRow> rows;
  for (std::size_t p = 0; p < passes.size(); ++p) {
    for (std::size_t t = 0; t < plans[p].tails.size(); ++t) {
      rows.push_back(row_of(head, results, plans[p].w, plans[p].tails[t], plans[p].heavy,
                            plans[p].components, passes[p].errors()[t]));
    }
  }
  return rows;
}

std::vector<WindowLengthRow> window_length_rows(const Head& head, const HeadOptions& options,
                                                const std::vector<PromptResult>& results) {
  std::vector<WindowLengthRow> rows;
  if (options.windows.empty()) return rows;
  const Index w = *std::min_element(
      options.windows.begin(), options.windows.end(),
      [](Index x, Index y) { return std::abs(x - kTypicalWindow) < std::abs(y - kTypicalWindow); });
  const std::vector<PromptResult> few = few_of(results);
  const Index longest = std::min(head.n, kHeadChunk);
  const Matrix keys = head.K(0, longest);
  const Matrix values = head.V(0, longest);
  for (Index n = kShortest; n <= longest; n = n < longest ? std::min(2 * n, longest) : n + 1) {
    if (w >= n) continue;
    std::vector<PromptResult> queries;
    for (std::size_t i = 0; i < few.size(); ++i) {
      PromptResult query;
      const auto back = static_cast<Index>(i) * n / (4 * static_cast<Index>(few.size()));
      const bool own = head.has_whole_text();
      const Index end = own ? n - back : n;
      if (!own && few[i].n < static_cast<double>(n)) continue;
      query.a = own ? Vector(head.scale * head.Q(end - 1, 1).row(0).transpose()) : few[i].a;
      query.n = static_cast<double>(end);
      const Vector s = keys.topRows(end) * query.a;
      const Vector weights = (s.array() - s.maxCoeff()).exp();
      query.T = values.topRows(end).transpose() * weights / weights.sum();
      query.norm = query.T.norm();
      query.signal = (query.T - values.topRows(end).colwise().mean().transpose()).norm();
      queries.push_back(std::move(query));
    }
    if (queries.empty()) continue;
    std::vector<WindowPass> pass;
    pass.emplace_back(
        head, WindowOptions{.window = w, .sinks = std::min(options.sinks, w), .tail = Tail::finite},
        one_gaussian(), queries);
    pass.front().add_chunk(keys.topRows(n), values.topRows(n));
    for (std::size_t t = 0; t < one_gaussian().size(); ++t) {
      const WindowRow row =
          row_of(head, queries, w, one_gaussian()[t], 0, 1, pass.front().errors()[t]);
      rows.push_back({.n = n, .w = w, .tail = row.tail, .lin_c = row.lin_c});
    }
  }
  return rows;
}

std::string judge_windows(std::vector<WindowRow>& rows, double tolerance, Index full_state,
                          const std::string& keys) {
  WindowRow* least = nullptr;
  WindowRow* cheapest = nullptr;
  for (WindowRow& row : rows) {
    row.best = false;
    if (2 * row.state > full_state || row.tail == Tail::mixture) continue;
    if (least == nullptr || row.lin_c < least->lin_c) least = &row;
    const bool within = row.lin_c <= tolerance;
    if (within && (cheapest == nullptr || row.state < cheapest->state)) cheapest = &row;
  }
  if (least == nullptr) return "no window with a tail takes half of the numbers that softmax keeps";
  WindowRow& row = cheapest != nullptr ? *cheapest : *least;
  row.best = true;
  const std::string numbers = "error " + brief(row.lin_c, 3) + " with " +
                              std::to_string(row.state) + " numbers instead of " + keys +
                              "(dₖ + dᵥ) = " + std::to_string(full_state) +
                              " (tail: " + std::string(name(row.tail)) + ")";
  const std::string kept = std::to_string(row.w) + " keys" +
                           (row.heavy ? " and " + std::to_string(*row.heavy) + " heavy ones" : "");
  if (cheapest == nullptr) {
    return "no window that was tried is within " + brief(100 * tolerance, 3) +
           " % in half of the numbers; the best keeps " + kept + ": " + numbers;
  }
  if (row.tail == Tail::none) return "local, " + kept + " suffice: " + numbers;
  return "linear beyond " + kept + ": " + numbers;
}

}  // namespace esscher
