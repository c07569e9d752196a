#include "esscher/report/pgf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <vector>

#include "esscher/base/error.h"

namespace esscher {
namespace {

using Files = std::map<std::string, std::string>;

constexpr const char* kColours[] = {"blue!70!black",   "red!70!black",    "green!50!black",
                                    "orange!90!black", "violet",          "teal",
                                    "brown",           "magenta!70!black"};

std::string text_of(const Json& json, const char* key) {
  if (!json.is_object()) return "";
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// A value as a column of a .dat holds it; nan where there is none, which pgfplots leaves out.
std::string dat_cell(const Json& row, const std::string& column) {
  const auto found = row.find(column);
  if (found == row.end() || found->is_null()) return "nan";
  if (found->is_number()) return found->dump();
  std::string text = found->is_string() ? found->get<std::string>() : found->dump();
  if (text == "inf") return "inf";
  std::replace_if(
      text.begin(), text.end(), [](char c) { return std::isspace(static_cast<unsigned char>(c)); },
      '_');
  return text.empty() ? "nan" : text;
}

// A name that pgfplots takes for a column.
std::string column_name(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
      '_');
  return text;
}

std::string series_name(const Json& row, const std::string& column) {
  if (column.empty()) return "";
  const auto found = row.find(column);
  if (found == row.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

struct Series {
  std::string name;
  std::vector<Json> rows;
};

// Rows by their series, in order of first appearance. Panels of a figure are series of their own.
std::vector<Series> split(const Json& rows, const std::string& column,
                          const std::string& facet = "") {
  std::vector<Series> out;
  for (const Json& row : rows) {
    std::string name = series_name(row, column);
    if (!facet.empty()) name = series_name(row, facet) + (name.empty() ? "" : ", ") + name;
    auto at = std::find_if(out.begin(), out.end(), [&](const Series& s) { return s.name == name; });
    if (at == out.end()) at = out.insert(out.end(), {name, {}});
    at->rows.push_back(row);
  }
  return out;
}

std::string dat(const std::vector<Json>& rows, const std::vector<std::string>& columns) {
  std::string out;
  for (const std::string& column : columns) {
    out += (out.empty() ? "" : " ") + column_name(column);
  }
  out += "\n";
  for (const Json& row : rows) {
    std::string line;
    for (const std::string& column : columns) {
      line += (line.empty() ? "" : " ") + dat_cell(row, column);
    }
    out += line + "\n";
  }
  return out;
}

std::string range(const Json& axis, char letter) {
  std::string out;
  if (axis.contains("min")) out += fmt::format(", {}min={}", letter, axis["min"].dump());
  if (axis.contains("max")) out += fmt::format(", {}max={}", letter, axis["max"].dump());
  return out;
}

std::string title_of(const Json& axis) {
  const std::string title = text_of(axis, "title");
  return title.empty() ? text_of(axis, "column") : title;
}

std::string axis_options(const Json& plot) {
  std::string out = "width=12cm, height=8cm, legend pos=outer north east, legend cell align=left";
  if (!plot.contains("x")) {  // bars over categories
    return out + ", xlabel={" + latex_text(text_of(plot, "category_title")) + "}, ylabel={" +
           latex_text(title_of(plot.at("y"))) + "}" + range(plot.at("y"), 'y');
  }
  const Json& x = plot.at("x");
  out += ", xlabel={" + latex_text(title_of(x)) + "}";
  if (x.value("log", false)) out += ", xmode=log";
  out += range(x, 'x');
  if (!plot.contains("y"))
    return out + ", ylabel={count}, ybar interval, xticklabel interval boundaries={}";
  const Json& y = plot.at("y");
  out += ", ylabel={" + latex_text(title_of(y)) + "}";
  if (y.value("log", false)) out += ", ymode=log";
  return out + range(y, 'y');
}

std::string reference_lines(const Json& plot) {
  std::string out;
  if (!plot.contains("references")) return out;
  for (const Json& line : plot.at("references")) {
    if (!line.at("value").is_number()) continue;
    const std::string v = line.at("value").dump();
    const bool is_x = text_of(line, "axis") == "x";
    out += is_x ? fmt::format(
                      "\\draw[gray, dotted] ({{axis cs:{},0}}|-{{rel axis cs:0,0}}) -- "
                      "({{axis cs:{},0}}|-{{rel axis cs:0,1}});\n",
                      v, v)
                : fmt::format(
                      "\\draw[gray, dotted] ({{rel axis cs:0,0}}|-{{axis cs:1,{}}}) -- "
                      "({{rel axis cs:1,0}}|-{{axis cs:1,{}}}) node[above left] {{{}}};\n",
                      v, v, latex_text(text_of(line, "label")));
  }
  return out;
}

std::string document(const std::string& caption, const std::string& options,
                     const std::string& body) {
  std::string comment = caption;
  std::replace(comment.begin(), comment.end(), '\n', ' ');
  return "% " + comment +
         "\n\\documentclass{article}\n\\usepackage{pgfplots}\n\\pgfplotsset{compat=1.16}\n"
         "\\pagestyle{empty}\n\\begin{document}\\noindent\n\\begin{tikzpicture}\n\\begin{axis}[" +
         options + "]\n" + body + "\\end{axis}\n\\end{tikzpicture}\n\\end{document}\n";
}

// One curve per series, dashed for the reference data, with bars where there is a band.
std::string curves(const std::string& id, const Json& plot, const Json& datasets, Files& files) {
  const std::string x = plot.at("x").at("column"), y = plot.at("y").at("column");
  const std::string low = text_of(plot, "low"), high = text_of(plot, "high");
  const std::string kind = text_of(plot, "kind");
  std::string body;
  std::map<std::string, std::size_t> colours;
  const auto draw = [&](const std::string& data, bool is_reference) {
    if (data.empty() || !datasets.contains(data)) return;
    std::size_t k = 0;
    for (const Series& series :
         split(datasets.at(data), text_of(plot, "series"), text_of(plot, "facet"))) {
      const bool band = !is_reference && !low.empty() && !high.empty();
      std::vector<std::string> columns{x, y};
      if (band) columns.insert(columns.end(), {low, high});
      const std::string file =
          fmt::format("{}{}-{}.dat", id, is_reference ? "-reference" : "", ++k);
      files[file] = dat(series.rows, columns);
      const auto [colour, is_new] = colours.try_emplace(series.name, colours.size());
      const std::string style =
          fmt::format("{}, {}", kColours[colour->second % std::size(kColours)],
                      is_reference        ? "dashed, forget plot"
                      : kind == "scatter" ? "only marks, mark=*, mark size=1.2pt"
                                          : "mark=*, mark size=1.2pt");
      const std::string bars =
          band ? fmt::format(", error bars/.cd, y dir=both, y explicit") : std::string();
      const std::string errors =
          band ? fmt::format(
                     ", y error plus expr=\\thisrow{{{}}}-\\thisrow{{{}}}, y error minus "
                     "expr=\\thisrow{{{}}}-\\thisrow{{{}}}",
                     column_name(high), column_name(y), column_name(y), column_name(low))
               : std::string();
      body += fmt::format("\\addplot[{}{}] table[x={}, y={}{}] {{{}}};\n", style, bars,
                          column_name(x), column_name(y), errors, file);
      if (!is_reference && !series.name.empty()) {
        body += "\\addlegendentry{" + latex_text(series.name) + "}\n";
      }
    }
  };
  draw(text_of(plot, "data"), false);
  draw(text_of(plot, "reference_data"), true);
  return body + reference_lines(plot);
}

std::string histogram(const std::string& id, const Json& plot, const Json& datasets, Files& files) {
  const std::string x = plot.at("x").at("column");
  std::string body;
  std::size_t k = 0;
  for (const Series& series : split(datasets.at(text_of(plot, "data")), text_of(plot, "series"))) {
    const std::string file = fmt::format("{}-{}.dat", id, ++k);
    files[file] = dat(series.rows, {x});
    body += fmt::format(
        "\\addplot[{}, fill, fill opacity=0.4, hist={{bins={}}}] table[y={}] {{{}}};\n",
        kColours[(k - 1) % std::size(kColours)], plot.value("bins", 40), column_name(x), file);
    if (!series.name.empty()) body += "\\addlegendentry{" + latex_text(series.name) + "}\n";
  }
  return body;
}

// Bars over the numbers of the categories, whose names stand on the axis.
std::string bars(const std::string& id, const Json& plot, const Json& datasets, Files& files,
                 std::string& options) {
  const std::string category = text_of(plot, "category"), y = plot.at("y").at("column");
  const Json& rows = datasets.at(text_of(plot, "data"));
  std::vector<std::string> names;
  for (const Json& row : rows) {
    const std::string name = series_name(row, category);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string ticks, labels;
  for (std::size_t i = 0; i < names.size(); ++i) {
    ticks += (i == 0 ? "" : ",") + std::to_string(i + 1);
    labels += (i == 0 ? "{" : ",{") + latex_text(names[i]) + "}";
  }
  options += ", ybar, xtick={" + ticks + "}, xticklabels={" + labels +
             "}, x tick label style={rotate=45, anchor=east}";
  std::string body;
  std::size_t k = 0;
  for (Series& series : split(rows, text_of(plot, "series"))) {
    for (Json& row : series.rows) {
      const auto at = std::find(names.begin(), names.end(), series_name(row, category));
      row["position"] = at - names.begin() + 1;
    }
    const std::string file = fmt::format("{}-{}.dat", id, ++k);
    files[file] = dat(series.rows, {"position", y});
    body += fmt::format("\\addplot[{}, fill] table[x=position, y={}] {{{}}};\n",
                        kColours[(k - 1) % std::size(kColours)], column_name(y), file);
    if (!series.name.empty()) body += "\\addlegendentry{" + latex_text(series.name) + "}\n";
  }
  return body;
}

// What the chart of a figure is, as chart_json.h describes it; null on pages of older programs.
Json description(const Json& figure) {
  const Json& spec = figure.at("spec");
  const auto meta = spec.find("usermeta");
  return meta != spec.end() && meta->contains("esscher") ? meta->at("esscher") : Json();
}

}  // namespace

std::map<std::string, std::string> pgf_figures(const Json& report) {
  Files files;
  std::string skipped;
  bool has_plot = false, has_figure = false;
  const Json datasets = report.value("datasets", Json::object());
  for (const Json& section : report.value("sections", Json::array())) {
    for (const Json& figure : section.value("figures", Json::array())) {
      has_figure = true;
      const std::string name = text_of(section, "id") + "-" + text_of(figure, "id");
      const std::string id =
          text_of(section, "id") == text_of(figure, "id") ? text_of(figure, "id") : name;
      const Json plot = description(figure);
      has_plot = has_plot || !plot.is_null();
      if (text_of(plot, "kind") == "heatmap" || !datasets.contains(text_of(plot, "data"))) {
        skipped += id + "\n";
        continue;
      }
      std::string options = axis_options(plot);
      const std::string kind = text_of(plot, "kind");
      const std::string body = kind == "histogram" ? histogram(id, plot, datasets, files)
                               : kind == "bar"     ? bars(id, plot, datasets, files, options)
                                                   : curves(id, plot, datasets, files);
      files[id + ".tex"] = document(text_of(figure, "caption"), options, body);
    }
  }
  if (has_figure && !has_plot) {
    throw FileError(
        "the page of this run was stored by an older esscher, without plots; the same command with "
        "the same --out stores it again");
  }
  if (!skipped.empty()) files["skipped.txt"] = skipped;
  return files;
}

}  // namespace esscher
