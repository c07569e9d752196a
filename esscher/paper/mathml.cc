#include "esscher/paper/mathml.h"

namespace esscher::paper::mathml {
namespace {

std::string element(const char* name, std::string_view body) {
  return std::string("<").append(name).append(">").append(body).append("</").append(name).append(
      ">");
}

}  // namespace

std::string math(const std::string& body) { return "<math display=\"block\">" + body + "</math>"; }
std::string id(std::string_view name) { return element("mi", name); }
std::string num(std::string_view digits) { return element("mn", digits); }
std::string op(std::string_view symbol) { return element("mo", symbol); }
std::string text(std::string_view words) { return element("mtext", words); }
std::string row(const std::string& body) { return element("mrow", body); }
std::string sub(const std::string& base, const std::string& below) {
  return element("msub", row(base) + row(below));
}
std::string sup(const std::string& base, const std::string& above) {
  return element("msup", row(base) + row(above));
}
std::string frac(const std::string& above, const std::string& below) {
  return element("mfrac", row(above) + row(below));
}
std::string root(const std::string& body) { return element("msqrt", body); }
std::string paren(const std::string& body) { return op("(") + body + op(")"); }
std::string norm2(const std::string& body) { return sup(op("‖") + body + op("‖"), num("2")); }

std::string empirical_law() { return sub(element("mover", id("μ") + op("^")), id("L")); }
std::string operator_on(const std::string& law) { return id("T") + op("[") + law + op("]"); }
std::string limit_in_time() { return sub(id("lim"), id("t") + op("→") + op("∞")); }

}  // namespace esscher::paper::mathml
