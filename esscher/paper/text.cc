#include "esscher/paper/text.h"

#include <fmt/format.h>

#include <cmath>

namespace esscher::paper {

std::string show(double x) { return fmt::format("{:.4g}", x); }

std::string show(std::int64_t n) {
  if (n < 10000) return std::to_string(n);
  const double power = std::log10(static_cast<double>(n));
  const auto whole = static_cast<int>(std::lround(power));
  if (n == static_cast<std::int64_t>(std::llround(std::pow(10.0, whole)))) {
    return fmt::format("1e{}", whole);
  }
  return std::to_string(n);
}

std::string show(double value, double std_error) {
  return fmt::format("{:.4g} ± {:.1g}", value, std_error);
}

Json verdict(std::string_view status, const std::string& text, const std::string& trouble) {
  if (!trouble.empty()) return {{"status", "fails"}, {"text", "Fails: " + trouble + "."}};
  return {{"status", status}, {"text", text}};
}

namespace mathml {

std::string math(const std::string& body) { return "<math display=\"block\">" + body + "</math>"; }
std::string id(std::string_view name) { return fmt::format("<mi>{}</mi>", name); }
std::string num(std::string_view digits) { return fmt::format("<mn>{}</mn>", digits); }
std::string op(std::string_view symbol) { return fmt::format("<mo>{}</mo>", symbol); }
std::string text(std::string_view words) { return fmt::format("<mtext>{}</mtext>", words); }
std::string row(std::string body) { return "<mrow>" + std::move(body) + "</mrow>"; }
std::string sub(const std::string& base, const std::string& below) {
  return "<msub>" + row(base) + row(below) + "</msub>";
}
std::string sup(const std::string& base, const std::string& above) {
  return "<msup>" + row(base) + row(above) + "</msup>";
}
std::string subsup(const std::string& base, const std::string& below, const std::string& above) {
  return "<msubsup>" + row(base) + row(below) + row(above) + "</msubsup>";
}
std::string frac(const std::string& above, const std::string& below) {
  return "<mfrac>" + row(above) + row(below) + "</mfrac>";
}
std::string paren(const std::string& body) { return op("(") + body + op(")"); }
std::string norm2(const std::string& body) { return sup(op("‖") + body + op("‖"), num("2")); }

}  // namespace mathml
}  // namespace esscher::paper
