#include "esscher/measure/link.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "esscher/base/error.h"

namespace esscher {
namespace {

constexpr double kNear = 8;         // probes up to here bound the offset of a link
constexpr int kFarPower = 20;       // and up to 2^20 its slope
constexpr double kSuperlinear = 2;  // growth of the slope over ten powers of two

template <class F>
LinkFunction entrywise(F g) {
  return [g](std::span<const double> t, std::span<double> out) {
    std::transform(t.begin(), t.end(), out.begin(), g);
  };
}

LinkFunction named(LinkName name) {
  switch (name) {
    case LinkName::sign:
      return entrywise([](double t) { return t > 0 ? 1.0 : t < 0 ? -1.0 : 0.0; });
    case LinkName::probit:
      return entrywise([](double t) { return 0.5 * std::erfc(-t * M_SQRT1_2); });
    case LinkName::tanh: return entrywise([](double t) { return std::tanh(t); });
    case LinkName::relu: return entrywise([](double t) { return std::max(t, 0.0); });
    case LinkName::sin: return entrywise([](double t) { return std::sin(t); });
    case LinkName::erf: return entrywise([](double t) { return std::erf(t); });
    case LinkName::polynomial: break;
  }
  throw_argument("link", "name", "polynomial", "Link::polynomial with its coefficients");
}

}  // namespace

Link::Link(LinkName link)
    : name_(esscher::name(link)), g_(named(link)), oscillates_(link == LinkName::sin) {
  if (link == LinkName::relu) {
    slope_ = 1;
    is_relu_ = true;
  } else {
    offset_ = 1;
  }
  if (link == LinkName::sign || link == LinkName::relu) kinks_ = {0.0};
}

Link Link::polynomial(double c0, double c1, double c2) {
  Link out;
  out.name_ = "polynomial";
  out.coefficients_ = Vector{{c0, c1, c2}};
  check_finite("link", "coefficients", out.coefficients_);
  out.g_ = entrywise([c0, c1, c2](double t) { return c0 + t * (c1 + t * c2); });
  out.slope_ = c2 == 0 ? std::abs(c1) : HUGE_VAL;
  return out;
}

Link Link::custom(LinkFunction g, std::vector<double> kinks) {
  Link out;
  out.name_ = "custom";
  out.g_ = std::move(g);
  out.kinks_ = std::move(kinks);
  out.oscillates_ = true;
  out.is_known_ = false;
  std::sort(out.kinks_.begin(), out.kinks_.end());
  for (const double kink : out.kinks_) {
    if (!std::isfinite(kink)) throw_argument("link", "kinks", to_text(kink), "finite numbers");
  }
  const auto checked = [&out](double t) {
    const double value = out(t);
    if (!std::isfinite(value)) {
      throw_argument("link", "g(" + to_text(t) + ")", to_text(value), "a finite number");
    }
    return value;
  };
  const double centre = checked(0);
  for (double t = -kNear; t <= kNear; t += 0.25) {
    out.offset_ = std::max(out.offset_, std::abs(checked(t) - centre));
  }
  double middle = 0;
  for (int power = 4; power <= kFarPower; ++power) {
    const double t = std::ldexp(1.0, power);
    const double rise = std::max(std::abs(checked(t) - centre), std::abs(checked(-t) - centre)) / t;
    out.slope_ = std::max(out.slope_, rise);
    if (power == kFarPower / 2) middle = out.slope_;
  }
  if (out.slope_ > kSuperlinear * middle && out.slope_ > 1e-6) {
    throw_argument("link", "g", "growing like " + to_text(out.slope_) + " |t| at |t| = 2^20",
                   "a function of at most linear growth");
  }
  return out;
}

double Link::operator()(double t) const {
  double out = 0;
  g_(std::span(&t, 1), std::span(&out, 1));
  return out;
}

void Link::rise(double t, std::span<const double> step, std::span<double> out) const {
  if (is_relu_ && t > 0) {
    std::transform(step.begin(), step.end(), out.begin(),
                   [t](double x) { return std::max(x, -t); });
    return;
  }
  const double start = (*this)(t);
  std::array<double, 64> ends;
  for (std::size_t first = 0; first < step.size(); first += ends.size()) {
    const std::size_t count = std::min(ends.size(), step.size() - first);
    for (std::size_t i = 0; i < count; ++i) ends[i] = t + step[first + i];
    g_(std::span<const double>(ends.data(), count), out.subspan(first, count));
  }
  for (double& x : out) x -= start;
}

std::vector<double> Link::far_slopes() const {
  if (!is_known_) return {};
  if (is_relu_) return {0.0, 1.0};
  if (coefficients_.size() > 0) return {coefficients_(1), coefficients_(1)};
  return {0.0, 0.0};
}

}  // namespace esscher
