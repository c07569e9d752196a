#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "esscher/base/number_text.h"
#include "esscher/report/pgf.h"

namespace esscher {
namespace {

// m(ee) x 10^k of a value with two digits of its error.
std::string with_error(double value, double std_error) {
  const int top = static_cast<int>(std::floor(std::log10(std::max(std::abs(value), std_error))));
  const int last = static_cast<int>(std::floor(std::log10(std_error))) - 1;  // of the error
  const bool shift = top < -3 || top > 4;
  const double unit = shift ? std::pow(10.0, top) : 1.0;
  const int decimals = std::max(0, (shift ? top : 0) - last);
  const double step = std::pow(10.0, decimals);
  const auto error = static_cast<std::int64_t>(std::llround(std_error / unit * step));
  std::string out = fmt::format("{:.{}f}({})", value / unit, decimals, error);
  if (shift) out += fmt::format(" \\times 10^{{{}}}", top);
  return out;
}

std::string plain(double value) {
  const std::string text = brief(value, 6);
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return text;
  return text.substr(0, e) + fmt::format(" \\times 10^{{{}}}", std::stoi(text.substr(e + 1)));
}

std::string cell_text(const Value& value) {
  struct Writer {
    std::string operator()(std::monostate) const { return "--"; }
    std::string operator()(bool x) const { return x ? "yes" : "no"; }
    std::string operator()(std::int64_t x) const { return "$" + std::to_string(x) + "$"; }
    std::string operator()(double x) const { return latex_number(x); }
    std::string operator()(const std::string& x) const { return latex_text(x); }
    std::string operator()(Length x) const {
      return x.is_infinite() ? "$\\infty$" : "$" + x.text() + "$";
    }
    std::string operator()(const NumberArray&) const { return ""; }
    std::string operator()(const RecordTable&) const { return ""; }
  };
  return std::visit(Writer{}, value);
}

bool is_number(ColumnType type) {
  return type == ColumnType::real || type == ColumnType::integer || type == ColumnType::length;
}

// The column that holds the standard error of column c; its number, or none.
std::ptrdiff_t error_of(const std::vector<Column>& columns, std::size_t c) {
  if (columns[c].type != ColumnType::real) return -1;
  const auto find = [&](const std::string& name) {
    const auto at = std::ranges::find(columns, name, &Column::name);
    return at == columns.end() ? std::ptrdiff_t{-1} : at - columns.begin();
  };
  const std::ptrdiff_t own = find(columns[c].name + "_std_error");
  if (own >= 0) return own;
  // A plain std_error belongs to the column before it.
  const std::ptrdiff_t plain = find("std_error");
  return plain == static_cast<std::ptrdiff_t>(c) + 1 ? plain : -1;
}

struct Sign {
  std::string_view utf8, latex;
};

constexpr Sign kSigns[] = {
    {"α", "\\alpha"},  {"β", "\\beta"},       {"γ", "\\gamma"},  {"Γ", "\\Gamma"},
    {"θ", "\\theta"},  {"λ", "\\lambda"},     {"Λ", "\\Lambda"}, {"μ", "\\mu"},
    {"ν", "\\nu"},     {"σ", "\\sigma"},      {"Σ", "\\Sigma"},  {"τ", "\\tau"},
    {"ω", "\\omega"},  {"ε", "\\varepsilon"}, {"∇", "\\nabla"},  {"∞", "\\infty"},
    {"±", "\\pm"},     {"×", "\\times"},      {"·", "\\cdot"},   {"≤", "\\le"},
    {"≥", "\\ge"},     {"≈", "\\approx"},     {"→", "\\to"},     {"−", "-"},
    {"′", "'"},        {"²", "^2"},           {"³", "^3"},       {"⁻", "^{-}"},
    {"¹", "^1"},       {"√", "\\surd"},       {"‖", "\\|"},      {"⟨", "\\langle"},
    {"⟩", "\\rangle"}, {"–", "\\textrm{--}"}, {"₁", "_1"},       {"₂", "_2"},
    {"∥", "\\|"},      {"ᵗ", "^t"},           {"⊤", "\\top"},    {"∈", "\\in"}};

// The character of several bytes at the beginning of `text`: known ones as mathematics, others as a
// question mark, so that the file compiles whatever a title holds.
std::string sign_text(std::string_view text, std::size_t& bytes) {
  for (const Sign& sign : kSigns) {
    if (!text.starts_with(sign.utf8)) continue;
    bytes = sign.utf8.size();
    return "$" + std::string(sign.latex) + "$";
  }
  bytes = 1;
  while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) ++bytes;
  return "?";
}

}  // namespace

std::string latex_text(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (static_cast<unsigned char>(c) >= 0x80) {
      std::size_t bytes = 1;
      out += sign_text(text.substr(i), bytes);
      i += bytes - 1;
      continue;
    }
    switch (c) {
      case '\\': out += "\\textbackslash{}"; break;
      case '~': out += "\\textasciitilde{}"; break;
      case '^': out += "\\textasciicircum{}"; break;
      case '&':
      case '%':
      case '$':
      case '#':
      case '_':
      case '{':
      case '}': out += std::string("\\") + c; break;
      case '<': out += "$<$"; break;
      case '>': out += "$>$"; break;
      case '|': out += "$|$"; break;
      default: out += c;
    }
  }
  return out;
}

std::string latex_number(double value, double std_error) {
  if (std::isnan(value)) return "--";
  if (std::isinf(value)) return value > 0 ? "$\\infty$" : "$-\\infty$";
  const bool noisy = std_error > 0 && std::isfinite(std_error);
  return "$" + (noisy ? with_error(value, std_error) : plain(value)) + "$";
}

std::string latex_table(const RecordTable& table, std::string_view caption) {
  struct Shown {
    std::size_t column;
    std::ptrdiff_t error;
  };
  std::vector<Shown> shown;
  std::vector<bool> is_error(table.columns.size(), false);
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const std::ptrdiff_t e = error_of(table.columns, c);
    if (e >= 0) is_error[static_cast<std::size_t>(e)] = true;
  }
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const ColumnType type = table.columns[c].type;
    if (type == ColumnType::array || type == ColumnType::table || is_error[c]) continue;
    shown.push_back({c, error_of(table.columns, c)});
  }
  std::string out = "% " + std::string(caption) +
                    "\n% Numbers in parentheses are standard errors of the last digits.\n"
                    "% Needs \\usepackage{booktabs}.\n\\begin{tabular}{";
  std::string head;
  for (const Shown& s : shown) {
    out += is_number(table.columns[s.column].type) ? 'r' : 'l';
    head += (head.empty() ? "" : " & ") + latex_text(table.columns[s.column].name);
  }
  out += "}\n\\toprule\n" + head + " \\\\\n\\midrule\n";
  for (const Record& record : table.rows) {
    std::string line;
    for (const Shown& s : shown) {
      const Value& value = record[s.column];
      const double* x = std::get_if<double>(&value);
      const double* e =
          s.error >= 0 ? std::get_if<double>(&record[static_cast<std::size_t>(s.error)]) : nullptr;
      line += (&s == &shown.front() ? "" : " & ");
      line += x != nullptr && e != nullptr ? latex_number(*x, *e) : cell_text(value);
    }
    out += line + " \\\\\n";
  }
  return out + "\\bottomrule\n\\end{tabular}\n";
}

}  // namespace esscher
