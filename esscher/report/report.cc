#include "esscher/report/report.h"

#include <fmt/format.h>

#include <map>

#include "esscher/base/error.h"
#include "esscher/base/version.h"
#include "esscher/io/file.h"
#include "esscher/report/assets.h"
#include "esscher/report/data.h"
#include "esscher/report/html.h"
#include "esscher/store/export.h"
#include "esscher/store/ranks.h"

namespace esscher {
namespace {

constexpr std::size_t kDrawnRows = 4000;           // per dataset
constexpr std::size_t kDownloadBytes = 3'600'000;  // keeps the page under 5 MB

struct Badge {
  const char* css;
  const char* icon;
  const char* text;
};

Badge badge_of(const std::string& status) {
  if (status == "holds") return {"holds", "✓", "holds"};
  if (status == "holds-fitted") return {"fitted", "≈", "holds, constant fitted"};
  if (status == "fails") return {"fails", "✗", "fails"};
  if (status == "info") return {"info", "i", "information"};
  throw_argument("report", "verdict.status", "\"" + status + "\"",
                 "holds, holds-fitted, fails or info");
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  if (!found->is_string()) throw_argument("report", key, dump(*found), "a string");
  return found->get<std::string>();
}

const Json& list_of(const Json& object, const char* key) {
  static const Json empty = Json::array();
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return empty;
  if (!found->is_array()) throw_argument("report", key, dump(*found), "an array");
  return *found;
}

Json document_of(const Run& run) {
  auto stored = run.document("report");
  return stored ? std::move(*stored) : generic_report(run);
}

// Letters, digits and dashes: safe as an id and in a link.
std::string slug(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out.push_back(plain ? c : '-');
  }
  return out;
}

std::string badge_html(const Json& verdict) {
  const Badge badge = badge_of(text_of(verdict, "status"));
  return fmt::format("<span class=\"badge {}\"><span aria-hidden=\"true\">{}</span> {}</span>",
                     badge.css, badge.icon, badge.text);
}

std::string table_html(const Json& table) {
  std::string out = "<div class=\"table-wrap\" tabindex=\"0\" role=\"region\" aria-label=\"" +
                    escape_html(text_of(table, "title")) +
                    "\"><table class=\"sortable\">\n<caption>" +
                    prose_inline(text_of(table, "title")) + "</caption>\n<thead><tr>";
  const Json& columns = list_of(table, "columns");
  for (const auto& column : columns) {
    out += "<th scope=\"col\"><button type=\"button\">" + escape_html(cell_text(column)) +
           "</button></th>";
  }
  out += "</tr></thead>\n<tbody>\n";
  const auto cell = [&](const Json& value) {
    const char* kind = value.is_number() ? " class=\"num\"" : "";
    out.append("<td")
        .append(kind)
        .append(">")
        .append(escape_html(cell_text(value)))
        .append("</td>");
  };
  for (const auto& row : list_of(table, "rows")) {
    out += "<tr>";
    if (row.is_array()) {
      for (const auto& value : row) cell(value);
    } else {
      for (const auto& column : columns) cell(row.value(column.get<std::string>(), Json(nullptr)));
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string figure_html(const Json& figure, const std::string& id) {
  const std::string caption = text_of(figure, "caption");
  const std::string without =
      report_has_charts() ? ""
                          : "<p class=\"no-charts\">This program was built without npm, so its "
                            "reports have no charts; the numbers are in the tables and in the "
                            "data below.</p>";
  return fmt::format(
      "<figure id=\"{0}\"><div class=\"chart\" data-figure=\"{0}\" role=\"img\" "
      "aria-label=\"{1}\">{2}</div>\n<figcaption>{3}</figcaption>\n"
      "<div class=\"tools\" data-for=\"{0}\" role=\"group\" aria-label=\"Save this figure\"></div>"
      "</figure>\n",
      id, escape_html(caption), without, prose_inline(caption));
}

std::string claim_html(const Json& section) {
  const std::string statement = text_of(section, "statement");
  const Json& hypotheses = list_of(section, "hypotheses");
  if (statement.empty() && hypotheses.empty()) return "";
  std::string out = "<div class=\"claim\">\n";
  if (!statement.empty()) out += "<div class=\"statement\">" + prose(statement) + "</div>\n";
  if (!hypotheses.empty()) {
    out += "<p class=\"label\">Hypotheses</p><ul>\n";
    for (const auto& hypothesis : hypotheses) {
      out += "<li>" + prose_inline(cell_text(hypothesis)) + "</li>\n";
    }
    out += "</ul>\n";
  }
  return out + "</div>\n";
}

std::string section_html(const Json& section, const std::string& id) {
  std::string out = "<section id=\"" + id + "\" aria-labelledby=\"" + id + "-title\">\n<h2 id=\"" +
                    id + "-title\">" + escape_html(text_of(section, "title")) + "</h2>\n";
  if (section.contains("verdict") && !section["verdict"].is_null()) {
    const Json& verdict = section["verdict"];
    out += "<p class=\"verdict\">" + badge_html(verdict) + " " +
           prose_inline(text_of(verdict, "text")) + "</p>\n";
  }
  out += claim_html(section) + prose(text_of(section, "text"));
  for (const auto& formula : list_of(section, "formulas")) {
    out += "<div class=\"formula\">" + math_html(cell_text(formula)) + "</div>\n";
  }
  for (const auto& figure : list_of(section, "figures")) {
    out += figure_html(figure, id + "-" + slug(text_of(figure, "id")));
  }
  for (const auto& table : list_of(section, "tables")) out += table_html(table);
  const std::string rerun = text_of(section, "rerun");
  if (!rerun.empty()) {
    out += "<div class=\"rerun\"><span class=\"label\">Run it yourself</span><code>" +
           escape_html(rerun) +
           "</code><button type=\"button\" class=\"copy\">Copy</button></div>\n";
  }
  return out + "</section>\n";
}

std::string id_of(const Json& section, std::size_t position) {
  const std::string id = slug(text_of(section, "id"));
  return id.empty() ? "section-" + std::to_string(position + 1) : id;
}

std::string contents_html(const Json& sections) {
  std::string out = "<nav aria-label=\"Contents\"><ol>\n";
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const Json& section = sections[i];
    std::string mark;
    if (section.contains("verdict") && !section["verdict"].is_null()) {
      const Badge badge = badge_of(text_of(section["verdict"], "status"));
      mark = fmt::format("<span class=\"mark {}\" title=\"{}\">{}</span>", badge.css, badge.text,
                         badge.icon);
    }
    out += "<li><a href=\"#" + id_of(section, i) + "\">" + escape_html(text_of(section, "title")) +
           "</a>" + mark + "</li>\n";
  }
  return out + "<li><a href=\"#provenance\">How this was made</a></li>\n</ol></nav>\n";
}

std::string provenance_html(const Run& run) {
  const Json origin = run.provenance();
  Json facts = Json::array();
  const auto fact = [&](const char* name, const Json& value) {
    facts.push_back(Json::array({name, cell_text(value)}));
  };
  fact("verb", origin["verb"]);
  fact("seed", origin["seed"]);
  fact("cells",
       fmt::format("{} of {}", dump(origin["cells"]["done"]), dump(origin["cells"]["total"])));
  std::string engines;
  for (const auto& engine : origin["engines"]) {
    engines.append(engines.empty() ? "" : ", ").append(engine.get<std::string>());
  }
  if (!engines.empty()) fact("engines", engines);
  fact("started", origin["created"]);
  std::string out =
      "<section id=\"provenance\" aria-labelledby=\"provenance-title\">\n"
      "<h2 id=\"provenance-title\">How this was made</h2>\n<dl class=\"facts\">\n";
  for (const auto& pair : facts) {
    out += "<div><dt>" + escape_html(pair[0].get<std::string>()) + "</dt><dd>" +
           escape_html(pair[1].get<std::string>()) + "</dd></div>\n";
  }
  out += "</dl>\n";
  out += table_html(
      {{"title", "Sessions: each start of the program that worked on this run"},
       {"columns",
        {"started", "version", "commit", "target", "host", "threads", "ranks", "cells", "seconds"}},
       {"rows", origin["sessions"]}});
  return out +
         "<details><summary>Configuration (config.toml)</summary><pre class=\"config\"><code>" +
         escape_html(run.info().config_toml) + "</code></pre></details>\n</section>\n";
}

std::map<std::string, Json> drawn_datasets(const Json& document) {
  std::map<std::string, Json> out;
  const auto datasets = document.find("datasets");
  if (datasets == document.end()) return out;
  for (const auto& [name, rows] : datasets->items()) out[name] = thinned(rows, kDrawnRows);
  return out;
}

// What the script of the page needs: specifications and thinned data.
Json page_data(const Json& document) {
  Json figures = Json::object();
  const Json& sections = list_of(document, "sections");
  for (std::size_t i = 0; i < sections.size(); ++i) {
    for (const auto& figure : list_of(sections[i], "figures")) {
      figures[id_of(sections[i], i) + "-" + slug(text_of(figure, "id"))] = figure.at("spec");
    }
  }
  return {{"figures", figures}, {"datasets", drawn_datasets(document)}};
}

std::string downloads_html(const Run& run) {
  const std::string data = packed(export_csv(run));
  if (data.size() > kDownloadBytes) {
    return "<p class=\"download\">All rows: <code>esscher export " +
           escape_html(run.directory().string()) + " --csv</code></p>\n";
  }
  return "<p class=\"download\"><button type=\"button\" id=\"download-rows\">Download all rows "
         "(CSV)</button></p>\n<script type=\"application/gzip\" id=\"rows\">" +
         data + "</script>\n";
}

// default-src 'none': the page cannot reach the network even if its data tried to.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'";

}  // namespace

bool report_has_charts() { return !vega_js().empty(); }

std::string report_html(const Run& run) {
  const Json document = document_of(run);
  const std::string title = text_of(document, "title");
  const Json& sections = list_of(document, "sections");
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", kPolicy);
  out +=
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n";
  out += fmt::format("<meta name=\"generator\" content=\"esscher {}\">\n", kVersion);
  out += "<title>" + escape_html(title) + "</title>\n<style>" + std::string(report_css()) +
         "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the results</a>\n";
  out +=
      "<header><div class=\"bar\"><span class=\"brand\">Esscher</span>"
      "<button type=\"button\" id=\"theme\" aria-label=\"Switch between light and dark\">"
      "<span aria-hidden=\"true\">◐</span></button></div>\n<h1>" +
      escape_html(title) + "</h1>\n<div class=\"lead\">" + prose(text_of(document, "lead")) +
      "</div>\n" + downloads_html(run) + contents_html(sections) +
      "</header>\n<main id=\"main\">\n";
  for (std::size_t i = 0; i < sections.size(); ++i) {
    out += section_html(sections[i], id_of(sections[i], i));
  }
  out += provenance_html(run) + "</main>\n";
  out += fmt::format("<footer>Made by esscher {} ({}).</footer>\n", kVersion, build_commit());
  out += "<script type=\"application/json\" id=\"page-data\">" + script_json(page_data(document)) +
         "</script>\n";
  if (report_has_charts()) out += "<script>" + std::string(vega_js()) + "</script>\n";
  return out + "<script>" + std::string(report_js()) + "</script>\n</body>\n</html>\n";
}

Json report_figures(const Run& run) {
  const Json document = document_of(run);
  const auto datasets = drawn_datasets(document);
  Json figures = Json::array();
  const Json& sections = list_of(document, "sections");
  for (std::size_t i = 0; i < sections.size(); ++i) {
    for (const auto& figure : list_of(sections[i], "figures")) {
      Json spec = figure.at("spec");
      for (const auto& name : dataset_names(spec)) {
        const auto found = datasets.find(name);
        if (found != datasets.end()) spec["datasets"][name] = found->second;
      }
      figures.push_back({{"id", text_of(figure, "id")},
                         {"section", id_of(sections[i], i)},
                         {"caption", text_of(figure, "caption")},
                         {"spec", std::move(spec)}});
    }
  }
  return {{"figures", std::move(figures)}};
}

void write_report(const Run& run, const std::filesystem::path& page) {
  if (!is_first_rank()) return;
  const std::string html = report_html(run);
  const Json figures = report_figures(run);
  write_text(page, html);
  auto specs = page;
  write_text(specs.replace_extension(".json"), dump(figures) + "\n");
}

}  // namespace esscher
