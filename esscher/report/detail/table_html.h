// A table of a page as HTML: numbers are rounded to their error, aligned at the decimal point, and
// sort by their value.
#pragma once

#include <string>

#include "esscher/report/page.h"

namespace esscher {

// A column is numeric if its cells are numbers, lengths, numbers as text, or absent. A column called
// "standard error", "error", "its error", "± .." or "X_std_error" is the error of the column before it
// (or of X), which then shows two digits of its error and six digits at most; so does a column
// "expected" behind an error. Other numbers have four digits.
std::string table_html(const PageTable& table);

}  // namespace esscher
