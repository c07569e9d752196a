#include "esscher/model/effect.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <mutex>

#include "esscher/base/error.h"
#include "esscher/estimate/block_interval.h"
#include "esscher/estimate/quantile.h"

namespace esscher {
namespace {

constexpr Index kRows = 32;  // positions whose probabilities are held at a time

// One number per judged position.
struct Positions {
  std::vector<double> nats, nats_replaced, kl;
  Index same = 0;
};

void compare(const Model& model, const std::vector<Index>& text, const Pass& a, const Pass& b,
             Index from, Positions& out) {
  const auto n = static_cast<Index>(text.size()) - 1;
  for (Index first = from; first < n; first += kRows) {
    const Index rows = std::min(kRows, n - first);
    const MatrixF p = log_probabilities(model, a, first, rows);
    const MatrixF q = log_probabilities(model, b, first, rows);
    for (Index i = 0; i < rows; ++i) {
      const Index next = text[static_cast<std::size_t>(first + i) + 1];
      out.nats.push_back(-p(i, next));
      out.nats_replaced.push_back(-q(i, next));
      double kl = 0;
      for (Index w = 0; w < p.cols(); ++w) {
        const double log_p = p(i, w);
        kl += std::exp(log_p) * (log_p - static_cast<double>(q(i, w)));
      }
      out.kl.push_back(kl);
      Index best_p = 0;
      Index best_q = 0;
      p.row(i).maxCoeff(&best_p);
      q.row(i).maxCoeff(&best_q);
      out.same += best_p == best_q ? 1 : 0;
    }
  }
}

double mean(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

// Errors of heads beside the softmax of the same input, gathered while a pass runs.
struct HeadErrors {
  std::map<std::pair<Index, Index>, std::vector<double>> relative;  // (layer, head) -> positions
  std::map<Index, Matrix> difference;                               // layer -> [n, heads * d]
  std::mutex mutex;
};

HeadRule watched(const HeadPlan& plan, const ModelSpec& spec, Index from, HeadErrors& errors) {
  return [&plan, &spec, from, &errors,
          rule = planned_heads(plan, spec)](const HeadInput& in) -> Matrix {
    Matrix out = rule(in);
    if (!plan.at(in.layer, in.head)) return out;
    const Matrix gap = out - softmax_head(in);
    std::vector<double> ratios;
    for (Index i = from; i < out.rows(); ++i) {
      const double norm = (out.row(i) - gap.row(i)).norm();
      ratios.push_back(norm > 0 ? gap.row(i).norm() / norm : 0.0);
    }
    const std::lock_guard lock(errors.mutex);
    auto& all = errors.relative[{in.layer, in.head}];
    all.insert(all.end(), ratios.begin(), ratios.end());
    Matrix& layer = errors.difference
                        .try_emplace(in.layer, Matrix::Zero(out.rows(), spec.heads * spec.head_dim))
                        .first->second;
    layer.middleCols(in.head * spec.head_dim, spec.head_dim) = gap;
    return out;
  };
}

std::string head_name(Index layer, Index head) {
  return "L" + std::to_string(layer) + ".H" + std::to_string(head);
}

HeadEffectRow head_row(const HeadPlan& plan, Index layer, Index head, double error) {
  HeadEffectRow row{.head = head_name(layer, head)};
  const std::optional<WindowOptions> window = plan.at(layer, head);
  if (!window) return row;
  row.window = window->window;
  row.sinks = window->sinks;
  row.heavy = window->heavy;
  row.tail = window->tail;
  row.error = error;
  return row;
}

}  // namespace

std::string verdict_of(const HeadEffectRow& row) {
  if (!row.window) return "exact";
  std::string kept = std::to_string(*row.window) + " keys";
  if (row.heavy.value_or(0) > 0) kept += " and " + std::to_string(*row.heavy) + " heavy ones";
  const bool enough = row.error <= kEnough;
  if (*row.tail == Tail::none) return kept + (enough ? " are enough" : " are not enough");
  const std::string tail = " (tail: " + std::string(name(*row.tail)) + ")";
  return (enough ? "linear beyond " : "not linear beyond ") + kept + tail;
}

Texts parse_tokens(std::string_view where, std::string_view text) {
  Texts out;
  std::size_t line = 1;
  std::vector<Index> now;
  std::size_t at = 0;
  const auto end_line = [&] {
    if (!now.empty()) out.push_back(std::move(now));
    now.clear();
    ++line;
  };
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\n') {
      end_line();
      ++at;
    } else if (c == ' ' || c == ',' || c == '\t' || c == '\r') {
      ++at;
    } else {
      std::size_t end = text.find_first_of(" ,\t\r\n", at);
      if (end == std::string_view::npos) end = text.size();
      const std::string_view word = text.substr(at, end - at);
      std::int64_t token = 0;
      const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), token);
      if (error != std::errc() || stop != word.data() + word.size() || token < 0) {
        throw FileError(std::string(where) + ": line " + std::to_string(line) + ": \"" +
                        std::string(word.substr(0, 40)) +
                        "\", expected token ids, one text per line");
      }
      now.push_back(token);
      at = end;
    }
  }
  end_line();
  if (out.empty())
    throw FileError(std::string(where) + ": no token ids, expected at least one text");
  return out;
}

EffectStudy::EffectStudy(std::shared_ptr<const Model> model, Texts texts, Index from)
    : model_(std::move(model)), texts_(std::move(texts)), from_(from) {
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    if (from < 0 || static_cast<Index>(texts_[i].size()) < from + 2) {
      throw_argument("model " + model_->name, "text " + std::to_string(i),
                     std::to_string(texts_[i].size()) + " tokens",
                     "at least " + std::to_string(from + 2) + ", judged from position " +
                         std::to_string(from));
    }
    original_.push_back(run_model(*model_, texts_[i], softmax_head));
  }
}

EffectRow EffectStudy::measure(const std::string& name, const HeadPlan& plan) const {
  const ModelSpec& spec = model_->spec;
  EffectRow row{.plan = name};
  Positions all;
  HeadErrors errors;
  std::vector<std::vector<double>> wo(static_cast<std::size_t>(spec.layers));
  Index longest = 0;
  for (std::size_t t = 0; t < texts_.size(); ++t) {
    errors.difference.clear();
    const Pass pass = run_model(*model_, texts_[t], watched(plan, spec, from_, errors));
    compare(*model_, texts_[t], original_[t], pass, from_, all);
    for (const auto& [l, gap] : errors.difference) {
      const auto layer = static_cast<std::size_t>(l);
      const MatrixF moved = times_transposed(gap.cast<float>(), model_->layers[layer].o.W);
      for (Index i = from_; i < moved.rows(); ++i) {
        wo[layer].push_back(moved.row(i).cast<double>().norm() / pass.residual_norm[layer]);
      }
    }
    longest = std::max(longest, static_cast<Index>(texts_[t].size()));
  }
  row.tokens = static_cast<Index>(all.kl.size());
  row.nats = mean(all.nats);
  row.nats_replaced = mean(all.nats_replaced);
  row.kl = mean(all.kl);
  const BlockInterval interval = block_interval(all.kl, kBlock);
  row.kl_low = interval.low < 0 ? 0 : interval.low;  // nan stays nan
  row.kl_high = interval.high;
  row.heavy = interval.heavy;
  row.top1 = static_cast<double>(all.same) / static_cast<double>(row.tokens);
  std::vector<double> everywhere;
  row.heads.emplace();
  for (Index l = 0; l < spec.layers; ++l) {
    LayerRow layer{.layer = l};
    std::vector<double> medians;
    for (Index h = 0; h < spec.heads; ++h) {
      const auto found = errors.relative.find({l, h});
      const bool replaced = found != errors.relative.end();
      const double error = replaced ? median(found->second) : 0.0;
      row.heads->push_back(head_row(plan, l, h, error));
      if (!replaced) continue;
      ++layer.replaced;
      medians.push_back(error);
    }
    if (layer.replaced > 0) {
      layer.error = median(medians);
      layer.wo_error = median(wo[static_cast<std::size_t>(l)]);
      everywhere.insert(everywhere.end(), medians.begin(), medians.end());
    }
    row.wo_error = std::max(row.wo_error, layer.wo_error);
    row.layers.push_back(layer);
  }
  if (!everywhere.empty()) row.error = median(everywhere);
  const PlanState state = plan_state(plan, spec, longest);
  row.state = state.plan;
  row.cache = state.cache;
  return row;
}

Cells<EffectRow> effect_cells(const std::shared_ptr<const EffectStudy>& study, const Model& model,
                              const HeadPlan& plan, bool select) {
  Cells<EffectRow> cells;
  std::vector<HeadPlan> plans = {plan};
  cells.keys.push_back("plan");
  for (Index l = 0; select && l < model.spec.layers; ++l) {
    for (Index h = 0; h < model.spec.heads; ++h) {
      const auto window = plan.at(l, h);
      if (!window) continue;
      HeadPlan one;
      one.heads[{l, h}] = window;
      plans.push_back(std::move(one));
      cells.keys.push_back(head_name(l, h));
    }
  }
  cells.compute = [study, plans = std::move(plans), keys = cells.keys](std::size_t i) {
    EffectRow row = study->measure(keys[i], plans[i]);
    if (i > 0) row.heads.reset();
    return std::vector<EffectRow>{std::move(row)};
  };
  return cells;
}

}  // namespace esscher
