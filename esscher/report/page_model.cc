#include "esscher/report/page_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "esscher/report/detail/layer_map.h"
#include "esscher/report/reading.h"

namespace esscher {
namespace {

PageTable effect_table(const std::vector<EffectRow>& rows) {
  PageTable table{
      .title = "One row per replacement; a click on a column sorts",
      .sheet = {.columns = {"replaced", "KL", "low", "high", "change in nats", "top-1",
                            "error of heads", "Wₒ error", "numbers kept", "bytes in float32"},
                .rows = {}}};
  for (const EffectRow& row : rows) {
    table.sheet.add(row.plan, row.kl, row.kl_low, row.kl_high, row.nats_replaced - row.nats,
                    row.top1, row.error, row.wo_error, row.state, 4 * row.state);
  }
  return table;
}

PageTable layer_table(const EffectRow& plan) {
  PageTable table{
      .title = "Layers with the whole plan in force",
      .sheet = {.columns = {"layer", "heads replaced", "error of heads", "Wₒ error"}, .rows = {}}};
  for (const LayerRow& row : plan.layers) {
    table.sheet.add(row.layer, row.replaced, row.error, row.wo_error);
  }
  return table;
}

// KL of each head replaced alone, by its name; empty without --select.
std::map<std::string, double> kl_alone(const std::vector<EffectRow>& rows) {
  std::map<std::string, double> out;
  for (std::size_t i = 1; i < rows.size(); ++i) out[rows[i].plan] = rows[i].kl;
  return out;
}

PageTable plan_table(const std::vector<HeadEffectRow>& heads,
                     const std::map<std::string, double>& kl) {
  PageTable table{.title = "Heads of the plan",
                  .sheet = {.columns = {"head", "verdict", "exact keys", "of them first keys",
                                        "heavy keys", "tail", "error of the head"},
                            .rows = {}}};
  if (!kl.empty()) table.sheet.columns.push_back("KL if replaced alone");
  for (const HeadEffectRow& row : heads) {
    if (!row.window) continue;
    Record record{cell(row.head),   cell(verdict_of(row)), cell(*row.window), cell(*row.sinks),
                  cell(*row.heavy), cell(name(*row.tail)), cell(row.error)};
    if (!kl.empty()) record.push_back(cell(kl.at(row.head)));
    table.sheet.add_row(std::move(record));
  }
  return table;
}

// The plan with its effect: which heads keep what, and their errors while all of it is in force.
void add_plan(const std::vector<EffectRow>& rows, Page& page) {
  const std::vector<HeadEffectRow>& heads = *rows.front().heads;
  const std::map<std::string, double> kl = kl_alone(rows);
  std::vector<LayerCell> cells;
  std::size_t replaced = 0, enough = 0;
  for (const HeadEffectRow& row : heads) {
    std::string text = verdict_of(row);
    const auto alone = kl.find(row.head);
    if (alone != kl.end()) text += fmt::format(", KL alone {:.3g}", alone->second);
    cells.push_back({.name = row.head, .value = row.error, .text = std::move(text)});
    replaced += row.window ? 1 : 0;
    enough += row.window && row.error <= kEnough ? 1 : 0;
  }
  Section section{
      .id = "plan",
      .title = "The plan",
      .text = fmt::format(
          "{} of {} heads are replaced; {} of them are within {:.0f} % of their softmax "
          "while the whole plan is in force.",
          replaced, heads.size(), enough, 100 * kEnough)};
  auto map = layer_map(page, "map-plan", cells, "relative error",
                       "Median error of each head with the whole plan in force; heads that stay "
                       "exact have 0.");
  if (map) {
    map->caption += " " + reading(map->chart, page.datasets);
    section.figures.push_back(std::move(*map));
  }
  section.tables.push_back(plan_table(heads, kl));
  page.sections.push_back(std::move(section));
}

Figure select_figure(const std::vector<EffectRow>& rows, Page& page) {
  Sheet sheet{.columns = {"head", "layer", "wo_error", "kl", "error"}, .rows = {}};
  for (std::size_t i = 1; i < rows.size(); ++i) {
    sheet.add(rows[i].plan, rows[i].plan.substr(0, rows[i].plan.find('.')), rows[i].wo_error,
              rows[i].kl, rows[i].error);
  }
  page.datasets["select"] = std::move(sheet);
  // Costs of heads differ by orders of magnitude; a logarithm shows them unless one costs nothing.
  const bool logs = std::all_of(rows.begin() + 1, rows.end(), [](const EffectRow& row) {
    return row.kl > 0 && row.wo_error > 0;
  });
  const auto least =
      std::min_element(rows.begin() + 1, rows.end(),
                       [](const EffectRow& a, const EffectRow& b) { return a.kl < b.kl; });
  return {
      .id = "select",
      .chart =
          ScatterChart{
              .data = "select",
              .x = {.column = "wo_error", .title = "Wₒ-weighted error", .log = logs},
              .y = {.column = "kl", .title = "KL to the original, nats per token", .log = logs},
              .series = "layer",
              .series_title = "layer",
              .label = "head",
              .tooltip = {"head", "wo_error", "kl", "error"}},
      .caption = fmt::format("One point per head, replaced alone. Heads at the bottom left cost "
                             "least, {} least of all "
                             "(KL {:.3g}).",
                             least->plan, least->kl)};
}

// Layers times heads, each replaced alone: what the model notices, and the error behind W_O.
void add_maps(const std::vector<EffectRow>& rows, Page& page, Section& section) {
  std::vector<LayerCell> kl, wo;
  const EffectRow* worst = &rows[1];
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::string text = fmt::format("error {:.3g}, top-1 {:.3f}", rows[i].error, rows[i].top1);
    kl.push_back({.name = rows[i].plan, .value = rows[i].kl, .text = text});
    wo.push_back({.name = rows[i].plan, .value = rows[i].wo_error, .text = text});
    if (rows[i].kl > worst->kl) worst = &rows[i];
  }
  const auto add = [&](std::optional<Figure> figure) {
    if (figure) section.figures.push_back(std::move(*figure));
  };
  add(layer_map(page, "map-kl", kl, "KL, nats per token",
                fmt::format("KL to the original model with one head replaced. The model misses {} "
                            "most (KL {:.3g}).",
                            worst->plan, worst->kl)));
  auto behind =
      layer_map(page, "map-wo", wo, "Wₒ-weighted error",
                "Size of the error behind Wₒ relative to the residual stream, one head replaced.");
  if (behind) behind->caption += " " + reading(behind->chart, page.datasets);
  add(std::move(behind));
}

std::string interval_text(const EffectRow& row) {
  if (row.heavy) return "no interval can be trusted here";
  return fmt::format("95 %: {:.4f} to {:.4f}", row.kl_low, row.kl_high);
}

}  // namespace

Page model_page(const std::vector<EffectRow>& rows) {
  const EffectRow& plan = rows.front();
  Page page{
      .title = "A model with replaced heads",
      .lead = fmt::format(
          "KL {:.4f} nats per token ({}), same most likely word at {:.1f} % of {} positions, {} "
          "numbers kept instead of {} ({:.1f} %).",
          plan.kl, interval_text(plan), 100 * plan.top1, plan.tokens, plan.state, plan.cache,
          100 * static_cast<double>(plan.state) / static_cast<double>(plan.cache))};
  Section section{.id = "effect",
                  .title = "What the model notices",
                  .text =
                      "KL compares the probabilities of the next word with those of the original "
                      "model; its interval resamples blocks of 16 positions. Errors of heads are "
                      "measured on what enters them in the replaced model."};
  section.tables = {effect_table(rows), layer_table(plan)};
  if (rows.size() > 1) add_maps(rows, page, section);
  if (rows.size() > 1) section.figures.push_back(select_figure(rows, page));
  page.sections.push_back(std::move(section));
  if (plan.heads) add_plan(rows, page);
  return page;
}

}  // namespace esscher
