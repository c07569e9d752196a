#include "esscher/report/report.h"

#include <fmt/format.h>

#include <cctype>
#include <map>

#include "esscher/base/version.h"
#include "esscher/io/file.h"
#include "esscher/report/assets.h"
#include "esscher/report/data.h"
#include "esscher/report/detail/table_html.h"
#include "esscher/report/html.h"
#include "esscher/report/page_json.h"
#include "esscher/report/vega_lite.h"
#include "esscher/store/export.h"

namespace esscher {
namespace {

constexpr std::size_t kDrawnRows = 4000;  // per dataset
constexpr std::size_t kBadgeText = 48;
constexpr std::size_t kLongPage = 2;  // sections from which the contents stand beside the page
constexpr std::size_t kDownloadBytes = 3'600'000;  // keeps the page under 5 MB

struct Badge {
  const char* css;
  const char* icon;
  const char* text;
};

Badge badge_of(VerdictStatus status) {
  switch (status) {
    case VerdictStatus::holds: return {"holds", "✓", "holds"};
    case VerdictStatus::holds_fitted: return {"fitted", "≈", "holds, constant fitted"};
    case VerdictStatus::fails: return {"fails", "✗", "fails"};
    case VerdictStatus::info: break;
  }
  return {"info", "i", "information"};
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

std::string figure_html(const Figure& figure, const std::string& id) {
  const std::string without =
      report_has_charts() ? ""
                          : "<p class=\"no-charts\">This program was built without npm, so its "
                            "reports have no charts; the numbers are in the tables and in the "
                            "data below.</p>";
  return fmt::format(
      "<figure id=\"{0}\"><div class=\"chart\" data-figure=\"{0}\" role=\"img\" "
      "aria-label=\"{1}\">{2}</div>\n<figcaption>{3}</figcaption>\n<p class=\"note\" hidden></p>\n"
      "<div class=\"tools\" data-for=\"{0}\" role=\"group\" aria-label=\"Save this figure\"></div>"
      "</figure>\n",
      id, escape_html(figure.caption), without, prose_inline(figure.caption));
}

std::string claim_html(const Section& section) {
  if (section.statement.empty() && section.hypotheses.empty()) return "";
  std::string out = "<div class=\"claim\">\n";
  if (!section.statement.empty()) {
    out += "<div class=\"statement\">" + prose(section.statement) + "</div>\n";
  }
  if (!section.hypotheses.empty()) {
    out += "<p class=\"label\">Hypotheses</p><ul>\n";
    for (const std::string& hypothesis : section.hypotheses) {
      out += "<li>" + prose_inline(hypothesis) + "</li>\n";
    }
    out += "</ul>\n";
  }
  return out + "</div>\n";
}

std::string verdict_html(const Verdict& verdict) {
  Badge badge = badge_of(verdict.status);
  // A short verdict that claims nothing is the badge itself.
  if (verdict.status == VerdictStatus::info && verdict.text.size() <= kBadgeText) {
    return "<p class=\"verdict\"><span class=\"badge info\">" + prose_inline(verdict.text) +
           "</span></p>\n";
  }
  return fmt::format(
      "<p class=\"verdict\"><span class=\"badge {}\"><span aria-hidden=\"true\">{}</span> "
      "{}</span> {}</p>\n",
      badge.css, badge.icon, badge.text, prose_inline(verdict.text));
}

// `rerun`: whether the command stands here; sections of one command say it once, after the last.
std::string section_html(const Section& section, const std::string& id, bool rerun) {
  std::string out = "<section id=\"" + id + "\" aria-labelledby=\"" + id + "-title\">\n<h2 id=\"" +
                    id + "-title\">" + escape_html(section.title) + "</h2>\n";
  if (section.verdict) out += verdict_html(*section.verdict);
  out += claim_html(section) + prose(section.text);
  for (const std::string& formula : section.formulas) {
    out += "<div class=\"formula\">" + math_html(formula) + "</div>\n";
  }
  for (const Figure& figure : section.figures) {
    out += figure_html(figure, id + "-" + slug(figure.id));
  }
  for (const PageTable& table : section.tables) out += table_html(table);
  if (rerun && !section.rerun.empty()) {
    out += "<div class=\"rerun\"><span class=\"label\">Run it yourself</span><code>" +
           escape_html(section.rerun) +
           "</code><button type=\"button\" class=\"copy\">Copy</button></div>\n";
  }
  return out + "</section>\n";
}

std::string id_of(const Section& section, std::size_t position) {
  const std::string id = slug(section.id);
  return id.empty() ? "section-" + std::to_string(position + 1) : id;
}

std::string contents_html(const std::vector<Section>& sections) {
  std::string out = "<nav aria-label=\"Contents\"><ol>\n";
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const Section& section = sections[i];
    std::string mark;
    if (section.verdict) {
      const Badge badge = badge_of(section.verdict->status);
      mark = fmt::format("<span class=\"mark {}\" title=\"{}\">{}</span>", badge.css, badge.text,
                         badge.icon);
    }
    out += "<li><a href=\"#" + id_of(section, i) + "\">" + escape_html(section.title) + "</a>" +
           mark + "</li>\n";
  }
  return out + "<li><a href=\"#provenance\">How this was made</a></li>\n</ol></nav>\n";
}

std::string count_text(std::size_t n) {
  static constexpr const char* kWords[] = {"no",   "one",    "two",   "three", "four",
                                           "five", "six",    "seven", "eight", "nine",
                                           "ten",  "eleven", "twelve"};
  return n <= 12 ? kWords[n] : std::to_string(n);
}

// "Nine statements: seven hold, two hold with fitted constants." Nothing for fewer than two statements with a verdict;
// heads that are linear have one too and state nothing.
std::string summary_html(const std::vector<Section>& sections) {
  std::map<VerdictStatus, std::size_t> counts;
  std::size_t all = 0;
  for (const Section& section : sections) {
    if (!section.verdict || section.verdict->status == VerdictStatus::info) continue;
    if (section.statement.empty()) continue;
    ++counts[section.verdict->status];
    ++all;
  }
  if (all < 2) return "";
  std::string parts;
  for (const auto& [status, n] : counts) {
    const char* verb =
        status == VerdictStatus::fails ? (n == 1 ? "fails" : "fail") : (n == 1 ? "holds" : "hold");
    parts += (parts.empty() ? "" : ", ") + count_text(n) + " " + verb +
             (status == VerdictStatus::holds_fitted ? " with fitted constants" : "");
  }
  std::string count = count_text(all);
  count[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(count[0])));
  return "<p class=\"summary\">" + count + " statements: " + parts + ".</p>\n";
}

std::string fact_html(std::string_view name, const std::string& value) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, escape_html(value));
}

std::string provenance_html(const Run& run) {
  const Json origin = run.provenance();
  std::string engines;
  for (const auto& engine : origin["engines"]) {
    engines.append(engines.empty() ? "" : ", ").append(engine.get<std::string>());
  }
  const auto [done, total] = run.status();
  std::string out =
      "<section id=\"provenance\" aria-labelledby=\"provenance-title\">\n"
      "<h2 id=\"provenance-title\">How this was made</h2>\n<dl class=\"facts\">\n";
  out += fact_html("verb", run.info().verb) + fact_html("seed", std::to_string(run.info().seed)) +
         fact_html("cells", fmt::format("{} of {}", done, total));
  if (!engines.empty()) out += fact_html("engines", engines);
  out += fact_html("started", origin["created"].get<std::string>()) + "</dl>\n";
  Sheet sessions = sheet_from_json(origin["sessions"]);
  out += table_html({.title = "Sessions: each start of the program that worked on this run",
                     .sheet = std::move(sessions)});
  return out +
         "<p>Tables show two digits of the error of a number, six digits of the number at most, "
         "and "
         "four where no error is known. Files keep all digits.</p>\n"
         "<details><summary>Configuration (config.toml)</summary><pre class=\"config\"><code>" +
         escape_html(run.info().config_toml) + "</code></pre></details>\n</section>\n";
}

// The data that the figures of the page draw.
std::map<std::string, Json> drawn_datasets(const Page& page) {
  std::map<std::string, Json> out;
  for (const auto& [name, sheet] : page.datasets)
    out[name] = sheet_json(thinned(sheet, kDrawnRows));
  return out;
}

// What the script of the page needs: specifications and thinned data.
Json page_data(const Page& page) {
  Json figures = Json::object();
  for (std::size_t i = 0; i < page.sections.size(); ++i) {
    for (const Figure& figure : page.sections[i].figures) {
      figures[id_of(page.sections[i], i) + "-" + slug(figure.id)] = vega_lite(figure.chart);
    }
  }
  return {{"figures", figures}, {"datasets", drawn_datasets(page)}};
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

void set_page(Run& run, const Page& page) { run.set_document("report", page_json(page)); }

Page page_of(const Run& run) {
  const auto stored = run.document("report");
  return stored ? page_from_json(*stored) : generic_page(run);
}

std::string report_html(const Run& run, const Page& page) {
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", kPolicy);
  out +=
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n";
  out += fmt::format("<meta name=\"generator\" content=\"esscher {}\">\n", kVersion);
  out += "<title>" + escape_html(page.title) + "</title>\n<style>" + std::string(report_css()) +
         "</style>\n</head>\n<body" + (page.sections.size() >= kLongPage ? " class=\"long\"" : "") +
         ">\n<a class=\"skip\" href=\"#main\">Skip to the results</a>\n";
  out +=
      "<header><div class=\"bar\"><span class=\"brand\">Esscher</span>"
      "<button type=\"button\" id=\"theme\" aria-label=\"Switch between light and dark\">"
      "<span aria-hidden=\"true\">◐</span></button></div>\n<h1>" +
      escape_html(page.title) + "</h1>\n<div class=\"lead\">" + prose(page.lead) + "</div>\n" +
      (page.setting.empty() ? "" : "<div class=\"setting\">" + prose(page.setting) + "</div>\n") +
      summary_html(page.sections) + downloads_html(run) + "</header>\n" +
      contents_html(page.sections) + "<main id=\"main\">\n";
  for (std::size_t i = 0; i < page.sections.size(); ++i) {
    const bool last =
        i + 1 == page.sections.size() || page.sections[i + 1].rerun != page.sections[i].rerun;
    out += section_html(page.sections[i], id_of(page.sections[i], i), last);
  }
  out += provenance_html(run) + "</main>\n";
  out += fmt::format("<footer>Made by esscher {} ({}).</footer>\n", kVersion, build_commit());
  out += "<script type=\"application/json\" id=\"page-data\">" +
         script_json(dump(page_data(page))) + "</script>\n";
  if (report_has_charts()) out += "<script>" + std::string(vega_js()) + "</script>\n";
  return out + "<script>" + std::string(charts_js()) + "</script>\n<script>" +
         std::string(report_js()) + "</script>\n</body>\n</html>\n";
}

Json report_figures(const Page& page) {
  const auto datasets = drawn_datasets(page);
  Json figures = Json::array();
  for (std::size_t i = 0; i < page.sections.size(); ++i) {
    for (const Figure& figure : page.sections[i].figures) {
      Json spec = vega_lite(figure.chart);
      for (const auto& name : dataset_names(spec)) {
        const auto found = datasets.find(name);
        if (found != datasets.end()) spec["datasets"][name] = found->second;
      }
      figures.push_back({{"id", figure.id},
                         {"section", id_of(page.sections[i], i)},
                         {"caption", figure.caption},
                         {"spec", std::move(spec)}});
    }
  }
  return {{"figures", std::move(figures)}};
}

void write_report(const Run& run, const Page& page, const std::filesystem::path& file) {
  const std::string html = report_html(run, page);
  const Json figures = report_figures(page);
  write_text(file, html);
  auto specs = file;
  write_text(specs.replace_extension(".json"), dump(figures) + "\n");
}

void write_report(const Run& run, const std::filesystem::path& file) {
  write_report(run, page_of(run), file);
}

}  // namespace esscher
