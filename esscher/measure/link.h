// Links g of a single-index label y = g(w'x) + noise (single_index.h):
//
//   sign    -1, 0, 1             probit  Phi(t), the normal distribution function
//   tanh    tanh t               relu    max(t, 0)
//   sin     sin t                erf     erf t
//   polynomial c0 + c1 t + c2 t^2        a function of a user
//
// A link grows at most linearly, |g(s) - g(t)| <= 2 offset + slope |s - t|, unless it is a
// polynomial with c2 != 0. At a kink g or a derivative jumps; quadratures are split there.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "esscher/base/enum_names.h"
#include "esscher/base/linalg.h"

namespace esscher {

// The links that have a name. A user's function has none.
enum class LinkName { sign, probit, tanh, relu, sin, erf, polynomial };

constexpr auto enum_names(LinkName) {
  return EnumNames<LinkName, 7>{"link",
                                {{{LinkName::sign, "sign"},
                                  {LinkName::probit, "probit"},
                                  {LinkName::tanh, "tanh"},
                                  {LinkName::relu, "relu"},
                                  {LinkName::sin, "sin"},
                                  {LinkName::erf, "erf"},
                                  {LinkName::polynomial, "polynomial"}}}};
}

// g of many arguments at once: out[i] = g(t[i]). It may be called from several threads.
using LinkFunction = std::function<void(std::span<const double> t, std::span<double> out)>;

class Link {
 public:
  // Any name but polynomial.
  explicit Link(LinkName name);
  // c0 + c1 t + c2 t^2.
  static Link polynomial(double c0, double c1, double c2);
  // A function of a user, smooth between its kinks. Throws ArgumentError if it is not finite, or
  // grows faster than linearly, on probes up to |t| = 2^20.
  static Link custom(LinkFunction g, std::vector<double> kinks = {});

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] double operator()(double t) const;
  // The same for many arguments.
  void operator()(std::span<const double> t, std::span<double> out) const { g_(t, out); }
  // out[i] = g(t + step[i]) - g(t), without cancellation where g is linear between the two.
  void rise(double t, std::span<const double> step, std::span<double> out) const;
  [[nodiscard]] const std::vector<double>& kinks() const { return kinks_; }
  [[nodiscard]] double offset() const { return offset_; }
  [[nodiscard]] double slope() const { return slope_; }
  // g oscillates, or may: quadratures look for more than one peak.
  [[nodiscard]] bool oscillates() const { return oscillates_; }
  [[nodiscard]] bool is_bounded() const { return is_known_ && slope_ == 0; }
  // c0, c1, c2 of a polynomial; empty otherwise.
  [[nodiscard]] const Vector& coefficients() const { return coefficients_; }
  // Slopes of g towards -infinity and infinity, where they are known: not for a user's function.
  [[nodiscard]] std::vector<double> far_slopes() const;

 private:
  Link() = default;

  std::string name_;
  LinkFunction g_;
  std::vector<double> kinks_;
  double offset_ = 0, slope_ = 0;
  bool oscillates_ = false;
  bool is_known_ = true;
  bool is_relu_ = false;
  Vector coefficients_;
};

}  // namespace esscher
