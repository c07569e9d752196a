// What a model notices when heads are replaced. Over the positions of given texts,
//
//   nats = mean of -log p(next word),   KL = mean of sum_w p(w) log(p(w)/p'(w))
//
// with p of the original model and p' of the replaced one. Neighbouring positions depend on each
// other, so the 95 % interval of KL resamples blocks of kBlock positions (estimate/block_interval.h).
//
// Errors of heads are measured in the replaced pass, on what enters the head there: T_s against the
// softmax T of the same queries, keys and values. Relative errors are |T_s - T| / |T|, medians over
// positions; W_O errors are |W_O (T_s - T)| / |x| with the residual stream x that attention adds to.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "esscher/base/cells.h"
#include "esscher/base/columns.h"
#include "esscher/model/plan.h"

namespace esscher {

inline constexpr Index kBlock = 16;

struct LayerRow {
  Index layer = 0;
  Index replaced = 0;   // heads
  double error = 0;     // median over replaced heads
  double wo_error = 0;  // of the whole layer

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("layer", row.layer, "", "layer, from 0");
    column("replaced", row.replaced, "", "heads that are replaced");
    column("error", row.error, "", "relative error, median over positions and replaced heads");
    column("wo_error", row.wo_error, "", "|W_O error| / |residual|, median over positions");
  }
};

// A head of the plan, while the whole plan is in force.
struct HeadEffectRow {
  std::string head;                  // "L0.H3"
  std::optional<Index> window = {};  // exact keys; absent: the head is not replaced
  std::optional<Index> sinks = {}, heavy = {};
  std::optional<Tail> tail = {};
  double error = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("head", row.head, "", "layer and head, from 0");
    column("window", row.window, "tokens", "exact keys; absent: the head is not replaced");
    column("sinks", row.sinks, "tokens", "of them, the first keys of the text");
    column("heavy", row.heavy, "tokens", "heavy keys that are kept beside them");
    column("tail", row.tail, "", "what stands for the other keys");
    column("error", row.error, "", "relative error, median over positions");
  }
};

// What a head keeps and whether that is enough, in words: "exact", "linear beyond 16 keys (tail:
// finite)", "16 keys are not enough". Enough is an error up to kEnough.
inline constexpr double kEnough = 0.1;
std::string verdict_of(const HeadEffectRow& row);

struct EffectRow {
  std::string plan;  // "plan", or the one head "L0.H3"
  Index tokens = 0;  // predicted
  double nats = 0;   // original
  double nats_replaced = 0;
  double kl = 0, kl_low = 0, kl_high = 0;
  bool heavy = false;
  double top1 = 0;             // share of positions with the same most likely word
  double error = 0;            // median over replaced heads
  double wo_error = 0;         // largest over layers
  Index state = 0, cache = 0;  // numbers kept at the end of the longest text
  std::vector<LayerRow> layers = {};
  std::optional<std::vector<HeadEffectRow>> heads = {};  // of the plan; absent for one head alone

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("plan", row.plan, "", "what is replaced: the plan, or one head");
    column("tokens", row.tokens, "tokens", "positions that are judged");
    column("nats", row.nats, "nats", "per token, original model");
    column("nats_replaced", row.nats_replaced, "nats", "per token, heads replaced");
    column("kl", row.kl, "nats", "divergence from the original model, per token");
    column("kl_low", row.kl_low, "nats", "lower end of its 95 % interval over blocks");
    column("kl_high", row.kl_high, "nats", "upper end");
    column("heavy", row.heavy, "", "whether the interval cannot be trusted");
    column("top1", row.top1, "", "share of positions with the same most likely word");
    column("error", row.error, "", "relative error of replaced heads, median");
    column("wo_error", row.wo_error, "", "|W_O error| / |residual|, largest over layers");
    column("state", row.state, "numbers", "numbers kept at the end of the longest text");
    column("cache", row.cache, "numbers", "numbers of the keys and values that it replaces");
    column("layers", row.layers, "", "one row per layer");
    column("heads", row.heads, "", "one row per head of the model; absent for one head alone");
  }
};

using Texts = std::vector<std::vector<Index>>;

// Token ids, whitespace or commas between them, one text per line; empty lines are passed over.
// Throws FileError that names the line and the word.
Texts parse_tokens(std::string_view where, std::string_view text);

// Judges positions from `from` on. Texts need from + 2 tokens. The original passes are made once.
class EffectStudy {
 public:
  EffectStudy(std::shared_ptr<const Model> model, Texts texts, Index from);

  [[nodiscard]] EffectRow measure(const std::string& name, const HeadPlan& plan) const;

 private:
  std::shared_ptr<const Model> model_;
  Texts texts_;
  Index from_;
  std::vector<Pass> original_;
};

// The plan, then, if `select`, each head that it replaces alone.
Cells<EffectRow> effect_cells(const std::shared_ptr<const EffectStudy>& study, const Model& model,
                              const HeadPlan& plan, bool select);

}  // namespace esscher
