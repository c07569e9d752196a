#include "esscher/paper/mathml.h"

namespace esscher::paper::mathml {
namespace {

std::string element(const char* name, std::string_view body) {
  return std::string("<").append(name).append(">").append(body).append("</").append(name).append(
      ">");
}

// A formula is markup: of its letters and signs, < and & must not be taken for it.
std::string leaf(const char* name, std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    escaped += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  }
  return element(name, escaped);
}

std::string space(const char* width) {
  return std::string("<mspace width=\"").append(width).append("\"/>");
}

// Fences grow only around what is tall: browsers stretch them too far around a single letter.
std::string fence(const char* symbol, const std::string& body) {
  const bool tall = body.find("<mfrac>") != std::string::npos;
  return std::string(tall ? "<mo>" : "<mo stretchy=\"false\">").append(symbol).append("</mo>");
}

}  // namespace

std::string math(const std::string& body) { return "<math display=\"block\">" + body + "</math>"; }
std::string id(std::string_view name) { return leaf("mi", name); }
std::string num(std::string_view digits) { return leaf("mn", digits); }
std::string op(std::string_view symbol) { return leaf("mo", symbol); }
std::string text(std::string_view words) {
  return space("0.5em") + leaf("mtext", words) + space("0.5em");
}
std::string fn(std::string_view name) { return id(name) + space("0.17em"); }
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
std::string paren(const std::string& body) {
  return row(fence("(", body) + body + fence(")", body));
}
std::string angle(const std::string& body) {
  return row(fence("⟨", body) + body + fence("⟩", body));
}
std::string norm(const std::string& body) {
  return row(fence("‖", body) + body + fence("‖", body));
}
std::string norm2(const std::string& body) { return sup(norm(body), num("2")); }
std::string and_also() { return op(",") + space("1.2em"); }

std::string empirical_law() {
  return sub("<mover accent=\"true\">" + id("μ") + "<mo stretchy=\"false\">^</mo></mover>",
             id("L"));
}
std::string operator_on(const std::string& law) {
  return id("T") + fence("[", law) + law + fence("]", law);
}
std::string limit_in_time() {
  return "<munder>" + id("lim") + row(id("t") + op("→") + op("∞")) + "</munder>" + space("0.17em");
}
std::string as_L_grows() { return text("as") + id("L") + op("→") + op("∞"); }
std::string for_long_prompts() {
  return text("for") + id("L") + op("≥") + id("L") + paren(id("ε"));
}

}  // namespace esscher::paper::mathml
