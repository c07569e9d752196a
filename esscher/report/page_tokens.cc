#include "esscher/report/page_tokens.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/number_text.h"
#include "esscher/report/reading.h"

namespace esscher {
namespace {

const Axis kLength = {.column = "L", .title = "prompt length L", .log = true};

// The rows with the longest prompt.
template <class Row>
std::vector<Row> longest(const std::vector<Row>& rows) {
  double L = 0;
  for (const Row& r : rows) L = std::max(L, r.L);
  std::vector<Row> out;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(out),
               [&](const Row& r) { return r.L == L; });
  return out;
}

// Exact numbers and their limits, one curve per value of a parameter.
template <class Row, class ParameterOf, class ExactOf, class LimitOf>
void add_curves(Page& page, const std::vector<Row>& rows, const ParameterOf& parameter,
                const ExactOf& exact, const LimitOf& limit) {
  Sheet found{.columns = {"L", "series", "value"}, .rows = {}}, limits = found;
  for (const Row& r : rows) {
    found.add(r.L, parameter(r), exact(r));
    limits.add(r.L, parameter(r), limit(r));
  }
  page.datasets["found"] = std::move(found);
  page.datasets["limits"] = std::move(limits);
}

Section section_of(const std::string& title, const std::string& text, Axis y,
                   const std::string& caption, PageTable table) {
  Section out{.id = "lengths", .title = title, .text = text};
  out.figures = {{.id = "lengths",
                  .chart = CurveChart{.data = "found",
                                      .x = kLength,
                                      .y = std::move(y),
                                      .series = "series",
                                      .reference_data = "limits",
                                      .reference_title = "limit"},
                  .caption = caption,
                  .read = true}};
  out.tables = {std::move(table)};
  return out;
}

// How far the longest prompts are from their limits.
template <class Row, class ExactOf, class LimitOf>
std::string distance_text(const std::vector<Row>& rows, const ExactOf& exact,
                          const LimitOf& limit) {
  double worst = 0;
  for (const Row& r : rows) worst = std::max(worst, std::abs(exact(r) - limit(r)));
  return "At L = " + brief(rows.front().L) + " no number is further than " + brief(worst, 2) +
         " from its limit.";
}

}  // namespace

Page equiangular_page(const std::vector<EquiangularRow>& rows) {
  const auto exact = [](const EquiangularRow& r) { return r.inner_product; };
  const auto limit = [](const EquiangularRow& r) { return r.predicted_inner_product; };
  const double rho = rows.front().rho;
  Page page{.title = "Tokens at equal angles",
            .lead = distance_text(longest(rows), exact, limit),
            .setting = "Tokens of unit length have the inner product ρ = " + brief(rho) +
                       " with each other; scores are γ log L ⟨x, y⟩."};
  add_curves(
      page, rows, [](const EquiangularRow& r) { return "γ = " + brief(r.gamma); }, exact, limit);
  Sheet sheet{.columns = {"γ", "L", "weight on itself", "inner product", "its limit", "boundary γ",
                          "its limit 1/(1−ρ)"},
              .rows = {}};
  for (const EquiangularRow& r : rows) {
    sheet.add(r.gamma, r.L, r.self_weight, r.inner_product, r.predicted_inner_product, r.boundary,
              r.predicted_boundary);
  }
  page.sections = {section_of(
      "Inner products of new tokens",
      "After one step of attention and division by their lengths, two tokens have an inner product "
      "that tends to 1, 4ρ/(1+3ρ) or ρ for γ below, at or above 1/(1−ρ). At the boundary γ a token "
      "weighs one half on itself.",
      {.column = "value", .title = "inner product"},
      "Inner product of two new tokens against prompt length, exact. Dashed: the limit.",
      {.title = "All lengths", .sheet = std::move(sheet)})};
  add_readings(page);
  return page;
}

Page sphere_page(const std::vector<SphereRow>& rows) {
  const auto exact = [](const SphereRow& r) { return r.H; };
  const auto limit = [](const SphereRow& r) { return r.predicted_H; };
  const std::int64_t d = rows.front().dim;
  Page page{.title = "Uniform tokens on a sphere",
            .lead = distance_text(longest(rows), exact, limit),
            .setting = "Tokens are uniform on the unit sphere of ℝ^{" + std::to_string(d) +
                       "}; scores are β⟨x, y⟩ with β of the size of L^{2/" + std::to_string(d - 1) +
                       "}, so that κ tokens are expected within a gap of 1 below the largest "
                       "possible score."};
  add_curves(
      page, rows, [](const SphereRow& r) { return "κ = " + brief(r.kappa); }, exact, limit);
  Sheet sheet{.columns = {"κ", "L", "β", "E Σω²", "its limit", "ESS"}, .rows = {}};
  for (const SphereRow& r : rows) sheet.add(r.kappa, r.L, r.beta, r.H, r.predicted_H, r.ess);
  page.sections = {
      section_of("Concentration of the weights",
                 "The fewer tokens are in reach, the more weight the nearest one has. The limit is "
                 "an integral "
                 "over the gaps below the largest possible score, which are a Poisson process.",
                 {.column = "value", .title = "E Σω²"},
                 "Mean of Σω² against prompt length, exact. Dashed: the limit.",
                 {.title = "All lengths", .sheet = std::move(sheet)})};
  add_readings(page);
  return page;
}

}  // namespace esscher
