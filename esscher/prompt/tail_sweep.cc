#include "esscher/prompt/detail/tail_sweep.h"

#include <algorithm>
#include <cmath>

#include "esscher/measure/score_law.h"

namespace esscher::detail {
namespace {

constexpr double kPanel = 3;
// Where hardly any token is met, powers of x are left.
constexpr double kSmoothPanel = 8;
constexpr double kHardlyMet = 1e-3;
constexpr double kRounding = 1e-14;
// Powers of x beyond leave the range of doubles.
constexpr double kMaxLog = 300;

class TailSweep {
 public:
  TailSweep(const TailSpan& span, const std::function<PointSize(double, double)>& add)
      : span_(span), add_(add) {}

  void run() {
    if (middle()) tail(span_.low, span_.centre_low, -1);
    tail(span_.high, span_.centre_high, 1);
  }

 private:
  // From x downwards; whether P is still above rounding at the end.
  bool middle() {
    const double count = std::max(1.0, std::ceil((span_.high - span_.low) / kPanel));
    const double width = (span_.high - span_.low) / count;
    for (double k = 0; k < count; ++k) {
      const double top = span_.high - k * width;
      const PanelRule rule = panel_rule(-top, -top + width, width);
      for (Index i = 0; i < rule.x.size(); ++i) {
        const PointSize one = add_(rule.x[i], rule.w[i]);
        once_ += one.once;
        square_ += one.square;
        if (!(one.log_P > kTailLogEnd)) return false;
      }
    }
    return true;
  }

  // |x - centre| = e^r; sign says which tail.
  void tail(double from, double centre, double sign) {
    double r = std::log(std::abs(from - centre));
    bool hardly_met = false;
    while (r < kMaxLog) {
      const double width = panel_width(r, centre, sign, hardly_met ? kSmoothPanel : kPanel);
      const PanelRule rule = panel_rule(r, r + width, width);
      PointSize panel{};
      for (Index i = 0; i < rule.x.size(); ++i) {
        const double distance = std::exp(rule.x[i]);
        const PointSize one = add_(-(centre + sign * distance), rule.w[i] * distance);
        panel.met = std::max(panel.met, one.met);
        panel.once += one.once;
        panel.square += one.square;
      }
      once_ += panel.once;
      square_ += panel.square;
      hardly_met = sign > 0 && panel.met < kHardlyMet;
      const bool small = panel.once <= kRounding * once_ && panel.square <= kRounding * square_;
      if (small && (hardly_met || sign < 0)) return;
      r += width;
    }
  }

  // The mass beyond falls by at most e^fall over a panel.
  [[nodiscard]] double panel_width(double r, double centre, double sign, double fall) const {
    const auto at = [&](double to) {
      return fall / std::max(kPanel, span_.exponent(centre + sign * std::exp(to)));
    };
    return at(r + at(r));
  }

  const TailSpan& span_;
  const std::function<PointSize(double, double)>& add_;
  double once_ = 0, square_ = 0;
};

}  // namespace

void sweep_tails(const TailSpan& span, const std::function<PointSize(double, double)>& add) {
  TailSweep(span, add).run();
}

}  // namespace esscher::detail
