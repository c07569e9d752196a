// The figures and tables of a stored page for LaTeX. A figure is a .tex that compiles alone, with
// pgfplots, beside one .dat of columns per curve; a table is a tabular with booktabs, to be \input.
//
//   for (const auto& [name, text] : pgf_figures(document)) write_text(folder / name, text);
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "esscher/base/columns.h"
#include "esscher/json/json.h"

namespace esscher {

// File name to text. Figures of kinds that pgfplots has no simple form of are left out; they are
// named in "skipped.txt". Throws FileError if the page was stored without their descriptions.
std::map<std::string, std::string> pgf_figures(const Json& report);

// Rows as a tabular. A column "x" followed anywhere by "std_error" or "x_std_error" becomes one
// column of values with their standard error in parentheses, 0.1234(56).
std::string latex_table(const RecordTable& table, std::string_view caption);

// Text with the characters escaped that LaTeX would read as commands.
std::string latex_text(std::string_view text);

// 1.234(56) \times 10^{-3} for 0.001234 with standard error 5.6e-5, in $..$; an exact number has six
// digits and no parentheses.
std::string latex_number(double value, double std_error = 0);

}  // namespace esscher
