#include "esscher/report/page_optimum.h"

#include <cmath>
#include <optional>

#include "esscher/base/number_text.h"

namespace esscher {
namespace {

// --- numbers

struct Curves {
  Sheet risks{.columns = {"L", "prediction", "risk"}, .rows = {}};
  Sheet scores{.columns = {"L", "layer", "u"}, .rows = {}};
  Sheet scores_limit{.columns = {"L", "layer", "u"}, .rows = {}};
};

const OptimumRow* limit_of(const std::vector<OptimumRow>& rows) {
  for (const OptimumRow& row : rows) {
    if (row.L.is_infinite()) return &row;
  }
  return nullptr;
}

Curves curves_of(const std::vector<OptimumRow>& rows) {
  Curves out;
  const OptimumRow* limit = limit_of(rows);
  for (const OptimumRow& row : rows) {
    if (row.L.is_infinite()) continue;
    const double L = static_cast<double>(row.L.count());
    out.risks.add(L, "best layer at this length", row.risk);
    out.risks.add(L, "best layer at infinite length", row.limit_risk);
    out.risks.add(L, "best affine map of the query", row.affine);
    if (row.linear_heads) out.risks.add(L, "best linear attention", *row.linear_heads);
    out.risks.add(L, row.bound ? "bound: the law is known" : "best prediction", row.bayes);
    if (row.u) out.scores.add(L, "best at this length", *row.u);
    if (row.u && limit != nullptr && limit->u) {
      out.scores_limit.add(L, "best at this length", *limit->u);
    }
  }
  return out;
}

Sheet table_of(const std::vector<OptimumRow>& rows) {
  Sheet sheet{.columns = {"L", "risk", "± risk", "best layer of L = ∞", "best prediction",
                          "best affine map", "best linear attention", "from (−U, −V)", "u", "v",
                          "w", "starts that agree"},
              .rows = {}};
  for (const OptimumRow& r : rows) {
    sheet.add(r.L.text(), r.risk, r.std_error, r.limit_risk, r.bayes, r.affine, r.linear_heads,
              r.mirror_risk, r.u, r.v, r.w,
              std::to_string(r.agreeing) + " of " + std::to_string(r.restarts));
  }
  return sheet;
}

// --- words

// "The best layer is 2 % above the best prediction at L = 10 and 0.1 % at L = 100."
std::string excess_text(const std::vector<OptimumRow>& rows) {
  std::string out;
  const auto say = [&](const OptimumRow& row) {
    if (!(row.bayes > 0)) return;
    out += (out.empty() ? " The best layer is " : " and ") +
           brief(100 * (row.risk / row.bayes - 1), 2) +
           (out.empty() ? " % above the best prediction at L = " : " % at L = ") + row.L.text();
  };
  const OptimumRow* last = nullptr;
  for (const OptimumRow& row : rows) last = row.L.is_infinite() ? last : &row;
  if (last == nullptr || rows.front().L.is_infinite()) return "";
  say(rows.front());
  if (last != &rows.front()) say(*last);
  return out.empty() ? out : out + ".";
}

// "u falls from 2.39 at L = 10 to 1.5 at L = 100; the best layer of an infinite prompt has 0.5."
std::string score_text(const std::vector<OptimumRow>& rows) {
  const OptimumRow *first = nullptr, *last = nullptr, *limit = limit_of(rows);
  for (const OptimumRow& row : rows) {
    if (!row.u || row.L.is_infinite()) continue;
    if (first == nullptr) first = &row;
    last = &row;
  }
  if (first == nullptr) return "";
  std::string out = "u is " + brief(*first->u, 3) + " at L = " + first->L.text();
  if (last != first) out += " and " + brief(*last->u, 3) + " at L = " + last->L.text();
  if (limit != nullptr && limit->u) {
    out += "; the best layer of an infinite prompt has " + brief(*limit->u, 3);
  }
  return out + ".";
}

std::string loss_of(const std::vector<OptimumRow>& rows) {
  return std::string(mean_of(rows.front().loss.value_or(TaskLoss::squared)));
}

// The first length, in the order of the rows, from which a risk is below the affine map.
std::optional<Length> crossing(const std::vector<OptimumRow>& rows, double OptimumRow::*risk) {
  for (const OptimumRow& row : rows) {
    if (row.*risk < row.affine) return row.L;
  }
  return std::nullopt;
}

std::string headline(const std::vector<OptimumRow>& rows) {
  const OptimumRow* limit = limit_of(rows);
  const OptimumRow& first = rows.front();
  std::string text = "At L = " + first.L.text() + " the best layer has the risk " +
                     brief(first.risk, 3) + ", the layer that is best at infinite length " +
                     brief(first.limit_risk, 3) + ", and the best affine map of the query " +
                     brief(first.affine, 3) + ".";
  if (limit != nullptr && limit->u && first.u && !first.L.is_infinite()) {
    text += std::string(" Its scores are ") + (*first.u < *limit->u ? "cooler" : "sharper") +
            " there: u = " + brief(*first.u, 3) + " instead of " + brief(*limit->u, 3) + ".";
  }
  return text;
}

std::string crossing_text(const std::vector<OptimumRow>& rows) {
  const auto say = [](const std::optional<Length>& L) {
    return L ? "from L = " + L->text() + " on" : std::string("at none of these lengths");
  };
  return "Of the lengths asked for, the best layer beats the affine map " +
         say(crossing(rows, &OptimumRow::risk)) + ", the best layer of an infinite prompt " +
         say(crossing(rows, &OptimumRow::limit_risk)) + ".";
}

// What linear heads cannot do, at the length where it is most.
std::string heads_text(const std::vector<OptimumRow>& rows) {
  const OptimumRow* most = nullptr;
  for (const OptimumRow& row : rows) {
    if (!row.linear_heads) return "";
    if (most == nullptr || *row.linear_heads - row.risk > *most->linear_heads - most->risk) {
      most = &row;
    }
  }
  if (most == nullptr || !(*most->linear_heads > most->risk)) {
    return " As many linear heads do as well at these lengths.";
  }
  return " As many linear heads have at least " + brief(*most->linear_heads, 3) +
         " at L = " + most->L.text() + ", where the best layer has " + brief(most->risk, 3) + ".";
}

// Whether (U, V) -> (-U, -V) leads to another optimum.
std::string families_text(const std::vector<OptimumRow>& rows) {
  const OptimumRow& last = rows.back();
  if (!last.mirror_risk) return "";
  const bool two = *last.mirror_risk < last.risk + 1e-6 * (1 + std::abs(last.risk));
  return " At L = " + last.L.text() + " a descent from (−U, −V) ends " +
         (two ? "at the same risk: optima come in two families."
              : "at the risk " + brief(*last.mirror_risk, 3) + ".");
}

}  // namespace

Page optimum_page(const std::vector<OptimumRow>& rows) {
  Page page{.title = "The best layer at each prompt length", .lead = headline(rows)};
  Curves curves = curves_of(rows);
  const Axis length{.column = "L", .title = "prompt length L", .log = true};
  Section risks{.id = "risks", .title = "Risks"};
  risks.text = crossing_text(rows) + heads_text(rows) + families_text(rows);
  risks.figures = {
      {.id = "risks",
       .chart = CurveChart{.data = "risks",
                           .x = length,
                           .y = {.column = "risk", .title = "risk", .log = true},
                           .series = "prediction",
                           .series_title = "prediction"},
       .caption = "The risk, " + loss_of(rows) + ", against prompt length." + excess_text(rows)}};
  risks.tables = {{.title = "Best layers", .sheet = table_of(rows)}};
  page.datasets = {{"risks", std::move(curves.risks)}};
  page.sections = {std::move(risks)};
  if (curves.scores.rows.empty()) return page;
  Section scores{.id = "scores", .title = "How sharp the best layer is"};
  scores.text =
      "u multiplies the scores. A finite prompt sees tokens of large scores too seldom, so that "
      "its "
      "best layer is not that of an infinite prompt. Short prompts may ask for sharp scores, whose "
      "largest token tells the side of the query, long ones for cooler scores.";
  scores.figures = {
      {.id = "scores",
       .chart = CurveChart{.data = "scores",
                           .x = length,
                           .y = {.column = "u", .title = "u of the best layer"},
                           .series = "layer",
                           .series_title = "layer",
                           .reference_data = curves.scores_limit.rows.empty() ? "" : "scores_limit",
                           .reference_title = "best at infinite length"},
       .caption =
           "The factor on scores of the best layer against prompt length: " + score_text(rows)}};
  page.datasets["scores"] = std::move(curves.scores);
  if (!curves.scores_limit.rows.empty()) {
    page.datasets["scores_limit"] = std::move(curves.scores_limit);
  }
  page.sections.push_back(std::move(scores));
  return page;
}

}  // namespace esscher
