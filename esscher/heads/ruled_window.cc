// Windows and tails of a head with rules (heads/rules.h). The window keeps the first and the last of
// the keys that a query sees, with their scores as they enter the softmax; the tail reads the moments
// of the others and their scores without softcap and mask. Behind a sliding window there are no first
// keys (heads/kept_keys.h).
#include <algorithm>
#include <array>
#include <cmath>

#include "esscher/heads/detail/ratio.h"
#include "esscher/heads/detail/visible_moments.h"
#include "esscher/heads/detail/window_study.h"
#include "esscher/heads/window.h"

namespace esscher {
namespace {

constexpr std::array kTails = {Tail::none, Tail::mean, Tail::first, Tail::gaussian, Tail::finite};

// Places of the exact keys among `count` seen ones: the first `sinks` and the last w - sinks.
std::vector<Index> exact_places(Index count, Index w, Index sinks) {
  std::vector<Index> out;
  for (Index i = 0; i < count; ++i) {
    if (i < sinks || i >= count - (w - sinks)) out.push_back(i);
  }
  return out;
}

class RuledWindows {
 public:
  explicit RuledWindows(const Head& head)
      : head_(head),
        K_(head.K(0, head.n)),
        V_(head.V(0, head.n)),
        model_{1, false, std::nullopt, {1, K_.colwise().mean(), V_.colwise().mean()}},
        keys_(K_.rowwise() - model_.moments.origin_k().transpose()),
        values_(V_.rowwise() - model_.moments.origin_v().transpose()),
        moments_(model_, keys_, values_) {}

  // Moves to the keys that the query sees.
  void move_to(Index query) {
    seen_ = seen_keys(head_, K_, query);
    a_ = head_.scale * head_.Q(query, 1).row(0).transpose();
    moments_.move_to(seen_.keys);
  }

  [[nodiscard]] WindowParts parts(Index w, Index sinks) const {
    const std::vector<Index> places = exact_places(static_cast<Index>(seen_.keys.size()), w, sinks);
    std::vector<Index> exact;
    Vector s(static_cast<Index>(places.size()));
    for (std::size_t i = 0; i < places.size(); ++i) {
      exact.push_back(seen_.keys[static_cast<std::size_t>(places[i])]);
      s(static_cast<Index>(i)) = seen_.scores(places[i]);
    }
    const double shift = a_.dot(model_.moments.origin_k());
    const double top = s.maxCoeff();
    const Vector weights = (s.array() - top).exp();
    WindowParts out;
    out.exact = {.log_mass = top + std::log(weights.sum()) - shift,
                 .value = gathered(V_, exact).transpose() * weights / weights.sum()};
    if (head_.rules.sink) {
      out.exact = merge(out.exact,
                        {.log_mass = *head_.rules.sink - shift, .value = Vector::Zero(head_.dv)});
    }
    PromptMoments tail = model_.moments;
    PromptMoments window(1, tail.origin_k(), tail.origin_v());
    window.add(gathered(keys_, exact), gathered(values_, exact),
               Matrix::Ones(static_cast<Index>(exact.size()), 1));
    tail.subtract(window);
    out.count = static_cast<double>(seen_.keys.size() - exact.size());
    if (!(out.count > 0)) return out;
    out.scores = tail.scores(a_.transpose(), 0).front();
    out.scores.mean.rowwise() += tail.origin_v().transpose();
    return out;
  }

 private:
  const Head& head_;
  Matrix K_, V_;
  SurrogateModel model_;
  Matrix keys_, values_;  // relative to the origins
  VisibleMoments moments_;
  SeenKeys seen_;
  Vector a_;
};

}  // namespace

std::vector<WindowRow> ruled_window_rows(const Head& head, const HeadOptions& options,
                                         const KeptKeys& kept, const std::vector<Index>& queries,
                                         const std::vector<PromptResult>& results) {
  std::vector<Index> windows;
  for (const Index w : options.windows) {
    if (w < head.n && w <= kept.count) windows.push_back(w);
  }
  std::vector<double> norms, signals;
  for (const PromptResult& query : results) {
    norms.push_back(query.norm);
    signals.push_back(query.signal);
  }
  std::vector<std::vector<double>> errors(windows.size() * kTails.size());
  RuledWindows study(head);
  for (std::size_t i = 0; i < queries.size(); ++i) {
    study.move_to(queries[i]);
    for (std::size_t w = 0; w < windows.size(); ++w) {
      const WindowParts parts =
          study.parts(windows[w], kept_sinks(head, std::min(options.sinks, windows[w])));
      for (std::size_t t = 0; t < kTails.size(); ++t) {
        errors[w * kTails.size() + t].push_back((results[i].T - combine(kTails[t], parts)).norm());
      }
    }
  }
  std::vector<WindowRow> rows;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    for (std::size_t t = 0; t < kTails.size(); ++t) {
      const std::vector<double>& one = errors[w * kTails.size() + t];
      rows.push_back({.w = windows[w],
                      .tail = kTails[t],
                      .lin = median_ratio(one, norms, norms),
                      .lin_c = median_ratio(one, signals, norms),
                      .state = window_state(head, kept, windows[w], kTails[t]),
                      .multiply_adds = window_multiply_adds(head, kept, windows[w], kTails[t])});
    }
  }
  return rows;
}

}  // namespace esscher
