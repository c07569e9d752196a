#include "esscher/scaling/expression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>

#include "esscher/base/error.h"

namespace esscher {
namespace {

using Formula = std::function<double(double)>;

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  Formula whole() {
    Formula out = sum();
    if (!at_end()) refuse("an operator or the end");
    return out;
  }

 private:
  // Formulas of untrusted text do not nest deeper than this.
  static constexpr int kDepth = 64;

  Formula sum() {
    if (++depth_ > kDepth) refuse("fewer brackets");
    Formula left = term();
    for (char op = 0; (op = one_of("+-")) != 0;) {
      Formula right = term();
      if (op == '+') {
        left = [l = std::move(left), r = std::move(right)](double n) { return l(n) + r(n); };
      } else {
        left = [l = std::move(left), r = std::move(right)](double n) { return l(n) - r(n); };
      }
    }
    --depth_;
    return left;
  }

  Formula term() {
    Formula left = power();
    for (char op = 0; (op = one_of("*/")) != 0;) {
      Formula right = power();
      if (op == '*') {
        left = [l = std::move(left), r = std::move(right)](double n) { return l(n) * r(n); };
      } else {
        left = [l = std::move(left), r = std::move(right)](double n) { return l(n) / r(n); };
      }
    }
    return left;
  }

  Formula power() {
    if (++depth_ > kDepth) refuse("fewer signs and powers");
    const char sign = one_of("+-");
    Formula out = sign == 0 ? atom() : power();
    if (sign == '-') out = [x = std::move(out)](double n) { return -x(n); };
    if (sign == 0 && one_of("^") != 0) {
      Formula exponent = power();
      out = [b = std::move(out), x = std::move(exponent)](double n) {
        return std::pow(b(n), x(n));
      };
    }
    --depth_;
    return out;
  }

  Formula atom() {
    skip_space();
    if (one_of("(") != 0) {
      Formula inside = sum();
      expect(")");
      return inside;
    }
    double number = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error == std::errc() && end != begin) {
      at_ += static_cast<std::size_t>(end - begin);
      return [number](double) { return number; };
    }
    return named();
  }

  Formula named() {
    const std::size_t from = at_;
    while (at_ < text_.size() && text_[at_] >= 'a' && text_[at_] <= 'z') ++at_;
    const std::string word = text_.substr(from, at_ - from);
    if (word == "n") return [](double n) { return n; };
    if (word == "pi") return [](double) { return std::numbers::pi; };
    if (word == "e") return [](double) { return std::numbers::e; };
    if (word == "min" || word == "max") {
      expect("(");
      Formula a = sum();
      expect(",");
      Formula b = sum();
      expect(")");
      const bool least = word == "min";
      return [least, a = std::move(a), b = std::move(b)](double n) {
        return least ? std::min(a(n), b(n)) : std::max(a(n), b(n));
      };
    }
    double (*function)(double) = nullptr;
    if (word == "log") function = [](double x) { return std::log(x); };
    if (word == "sqrt") function = [](double x) { return std::sqrt(x); };
    if (word == "exp") function = [](double x) { return std::exp(x); };
    if (word == "floor") function = [](double x) { return std::floor(x); };
    if (function == nullptr) {
      at_ = from;
      refuse("a number, n, pi, e, log, sqrt, exp, floor, min, max or a bracket");
    }
    expect("(");
    Formula inside = sum();
    expect(")");
    return [function, x = std::move(inside)](double n) { return function(x(n)); };
  }

  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }
  // The next character if it is one of these, else 0.
  char one_of(const char* characters) {
    if (at_end() || std::string(characters).find(text_[at_]) == std::string::npos) return 0;
    return text_[at_++];
  }
  void expect(const char* character) {
    if (one_of(character) == 0) refuse(character);
  }
  [[noreturn]] void refuse(const std::string& expected) const {
    throw_argument("expression", "formula", "\"" + text_ + "\"",
                   expected + " at character " + std::to_string(at_ + 1));
  }

  const std::string& text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::function<double(double)> parse_expression(const std::string& text) {
  return Parser(text).whole();
}

}  // namespace esscher
