// Formulas of the report as presentation MathML. math() wraps a block; id() is one identifier,
// num() a number, op() an operator, fn() the name of a function before its argument, text() words
// with space around them. Fences grow around fractions only.
#pragma once

#include <string>
#include <string_view>

namespace esscher::paper::mathml {

std::string math(const std::string& body);
std::string id(std::string_view name);
std::string num(std::string_view digits);
std::string op(std::string_view symbol);
std::string text(std::string_view words);
std::string fn(std::string_view name);
std::string row(const std::string& body);
std::string sub(const std::string& base, const std::string& below);
std::string sup(const std::string& base, const std::string& above);
std::string frac(const std::string& above, const std::string& below);
std::string root(const std::string& body);  // the square root
std::string paren(const std::string& body);
std::string angle(const std::string& body);
std::string norm(const std::string& body);
std::string norm2(const std::string& body);  // |body|^2
std::string and_also();                      // a comma between two formulas of one line

std::string empirical_law();                      // mu_hat_L
std::string operator_on(const std::string& law);  // T[law]
std::string limit_in_time();                      // lim_{t -> infinity}
std::string as_L_grows();                         // as L -> infinity
std::string for_long_prompts();                   // for L >= L(eps)

}  // namespace esscher::paper::mathml
