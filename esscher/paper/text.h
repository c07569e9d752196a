// Words of the report: numbers as text, verdicts, formulas as MathML.
#pragma once

#include <string>
#include <string_view>

#include "esscher/json/json.h"

namespace esscher::paper {

// Four significant digits ("0.01234", "1.2e-09"); powers of ten read as "1e6".
std::string show(double x);
std::string show(std::int64_t n);
// "0.123 ± 0.004"
std::string show(double value, double std_error);

// The status with its text, or "fails" with the trouble if there is any.
Json verdict(std::string_view status, const std::string& text, const std::string& trouble = {});

// Presentation MathML. math() wraps a block; a word is one identifier or number, text() is prose.
namespace mathml {
std::string math(const std::string& body);
std::string id(std::string_view name);
std::string num(std::string_view digits);
std::string op(std::string_view symbol);
std::string text(std::string_view words);
std::string row(std::string body);
std::string sub(const std::string& base, const std::string& below);
std::string sup(const std::string& base, const std::string& above);
std::string subsup(const std::string& base, const std::string& below, const std::string& above);
std::string frac(const std::string& above, const std::string& below);
std::string paren(const std::string& body);
std::string norm2(const std::string& body);  // |body|^2
}  // namespace mathml

}  // namespace esscher::paper
