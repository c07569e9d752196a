#include "esscher/report/detail/table_html.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/report/html.h"

namespace esscher {
namespace {

constexpr int kDigits = 4;              // of numbers without an error
constexpr std::size_t kShortText = 18;  // columns of such texts stay on one line

// What a reader sees above a column whose name in files is short.
constexpr std::pair<std::string_view, std::string_view> kHeads[] = {
    {"L", "L"},
    {"t", "time"},
    {"eps", "ε"},
    {"tau2", "τ²"},
    {"ess", "effective sample size"},
    {"bayes", "Bayes risk"},
    {"excess", "above the limit"},
    {"limiting_risk", "limiting risk"},
    {"std_error", "standard error"},
    {"sup_distance", "largest distance"},
    {"sup_gradient_gap", "largest gradient gap"},
    {"length_low", "95 % from"},
    {"length_high", "95 % to"},
    {"risk_before", "risk one token before"},
};

// Words of enums that are short in files, as a reader says them.
constexpr std::pair<std::string_view, std::string_view> kCells[] = {
    {"bayes", "Bayes"},           {"infinity", "infinite prompt"},
    {"t_end", "end of its time"}, {"max_steps", "out of steps"},
    {"grad_v", "gradient in V"},  {"grad_u", "gradient in U"},
};

std::string words_of_cell(std::string text) {
  for (const auto& [word, words] : kCells) {
    if (text == word) return std::string(words);
  }
  return text == "inf" ? "∞" : readable_numbers(text);
}

// Other names lose their underscores; an error beside its value is "its standard error".
std::string head_of(const std::string& name) {
  for (const auto& [column, words] : kHeads) {
    if (name == column) return std::string(words);
  }
  if (name.ends_with("_std_error")) return "its standard error";
  std::string words = name;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::optional<double> number_of(const Value& value) {
  if (const double* x = std::get_if<double>(&value)) {
    return std::isfinite(*x) ? std::optional(*x) : std::nullopt;
  }
  if (const auto* n = std::get_if<std::int64_t>(&value)) return static_cast<double>(*n);
  if (const auto* L = std::get_if<Length>(&value)) {
    return L->is_infinite() ? HUGE_VAL : static_cast<double>(L->count());
  }
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || text->empty()) return std::nullopt;
  if (*text == "∞") return HUGE_VAL;
  char* end = nullptr;
  const double x = std::strtod(text->c_str(), &end);
  return *end == '\0' ? std::optional(x) : std::nullopt;
}

bool is_blank(const Value& value) {
  if (std::holds_alternative<std::monostate>(value)) return true;
  if (const double* x = std::get_if<double>(&value)) return !std::isfinite(*x);
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr && (text->empty() || *text == "–" || *text == "-" || *text == "none");
}

bool is_numeric(const Sheet& sheet, std::size_t column) {
  bool any = false;
  for (const Record& row : sheet.rows) {
    if (number_of(row[column])) {
      any = true;
    } else if (!is_blank(row[column])) {
      return false;
    }
  }
  return any;
}

// The column whose standard error this one is.
std::optional<std::size_t> errs(const Sheet& sheet, std::size_t column) {
  const std::string& name = sheet.columns[column];
  const std::string suffix = "_std_error";
  if (name.size() > suffix.size() && name.ends_with(suffix)) {
    const std::string of = name.substr(0, name.size() - suffix.size());
    const auto found = std::find(sheet.columns.begin(), sheet.columns.end(), of);
    if (found == sheet.columns.end()) return std::nullopt;
    return static_cast<std::size_t>(found - sheet.columns.begin());
  }
  bool beside = name.starts_with("± ");
  for (const char* word : {"error", "std_error", "standard error", "its error"}) {
    beside = beside || name == word;
  }
  if (beside && column > 0 && is_numeric(sheet, column - 1)) return column - 1;
  return std::nullopt;
}

// The column of the errors whose places the numbers of this column have: its own, or those of the
// value that it is expected to agree with.
std::optional<std::size_t> errors_of(const Sheet& sheet, std::size_t column) {
  for (std::size_t i = 0; i < sheet.columns.size(); ++i) {
    const std::optional<std::size_t> of = errs(sheet, i);
    if (of == column || (of && i + 1 == column && sheet.columns[column] == "expected")) return i;
  }
  return std::nullopt;
}

std::string number_text(const Value& value, std::optional<double> error) {
  const double* x = std::get_if<double>(&value);
  if (x == nullptr) return cell_text(value);
  return error ? brief_to_error(*x, *error) : brief(*x, kDigits);
}

// Texts of one column, padded behind the decimal point so that points stand below each other.
void align(std::vector<std::string>& texts) {
  std::size_t longest = 0;
  bool powers = false;
  const auto decimals = [](const std::string& text) {
    const auto point = text.find('.');
    return point == std::string::npos ? std::size_t{0} : text.size() - point;  // with the point
  };
  for (const std::string& text : texts) {
    powers = powers || text.find("×") != std::string::npos || text.find("10⁻") != std::string::npos;
    longest = std::max(longest, decimals(text));
  }
  if (powers || longest == 0) return;
  for (std::string& text : texts) {
    const std::size_t have = decimals(text);
    for (std::size_t i = have; i < longest; ++i) text += i == 0 ? "\u2008" : "\u2007";
  }
}

struct ShownColumn {
  bool numeric = false;
  bool short_text = true;
  std::vector<std::string> texts = {};
};

ShownColumn column_of(const Sheet& sheet, std::size_t at) {
  ShownColumn out{.numeric = is_numeric(sheet, at)};
  const std::optional<std::size_t> errors = errors_of(sheet, at);
  const bool is_error = errs(sheet, at).has_value();
  for (const Record& row : sheet.rows) {
    std::string text;
    const double* x = std::get_if<double>(&row[at]);
    if (is_error && x != nullptr && std::isfinite(*x)) {
      text = brief(*x, 2);
    } else if (out.numeric && !is_blank(row[at])) {
      text = number_text(row[at], errors ? number_of(row[*errors]) : std::nullopt);
    } else {
      text = cell_text(row[at]);
    }
    text = words_of_cell(std::move(text));
    if (out.numeric && text.starts_with('-')) text.replace(0, 1, "−");
    out.short_text = out.short_text && text.size() <= kShortText;
    out.texts.push_back(std::move(text));
  }
  if (out.numeric) align(out.texts);
  return out;
}

}  // namespace

std::string table_html(const PageTable& table) {
  const Sheet& sheet = table.sheet;
  std::vector<ShownColumn> columns;
  for (std::size_t i = 0; i < sheet.columns.size(); ++i) columns.push_back(column_of(sheet, i));
  std::string out = "<div class=\"table-wrap\" tabindex=\"0\" role=\"region\" aria-label=\"" +
                    escape_html(table.title) + "\"><table class=\"sortable\">\n<caption>" +
                    prose_inline(table.title) + "</caption>\n<thead><tr>";
  for (std::size_t i = 0; i < columns.size(); ++i) {
    out.append(columns[i].numeric ? "<th scope=\"col\" class=\"num\">" : "<th scope=\"col\">")
        .append("<button type=\"button\">" + prose_inline(head_of(sheet.columns[i])) +
                "</button></th>");
  }
  out += "</tr></thead>\n<tbody>\n";
  for (std::size_t r = 0; r < sheet.rows.size(); ++r) {
    out += "<tr>";
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::optional<double> x = number_of(sheet.rows[r][i]);
      out += columns[i].numeric      ? "<td class=\"num\""
             : columns[i].short_text ? "<td class=\"short\""
                                     : "<td";
      if (columns[i].numeric && x) {
        out += " data-value=\"" + (std::isinf(*x) ? std::string("Infinity") : to_text(*x)) + "\"";
      }
      out += ">" + escape_html(columns[i].texts[r]) + "</td>";
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace esscher
