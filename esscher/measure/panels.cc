#include "esscher/measure/detail/panels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace esscher {
namespace {

constexpr int kPoints = 16;
constexpr double kNegligible = 44;  // e^-44 is 8e-20
constexpr int kDepth = 70;          // halvings of one panel
constexpr std::size_t kMostPanels = 40000;

using Values = std::array<double, kPoints>;

// Positive half of the Gauss-Legendre rule of 16 points on [-1,1].
constexpr std::array<double, 8> kAbscissae = {
    0.09501250983763744, 0.28160355077925891, 0.45801677765722739, 0.61787624440264375,
    0.75540440835500303, 0.86563120238783174, 0.94457502307323258, 0.98940093499164993};
constexpr std::array<double, 8> kWeights = {
    0.18945061045506850, 0.18260341504492359, 0.16915651939500254, 0.14959598881657673,
    0.12462897125553387, 0.09515851168249278, 0.06225352393864789, 0.02715245941175409};

double abscissa(int i) { return i < 8 ? -kAbscissae[7 - i] : kAbscissae[i - 8]; }
double rule_weight(int i) { return i < 8 ? kWeights[7 - i] : kWeights[i - 8]; }

struct Panel {
  double lo = 0, hi = 0;
  int depth = 0;
  Values v = {}, psi = {};
  double highest = 0;
};

Panel make_panel(const LogDensity& psi, double lo, double hi, int depth) {
  Panel out{.lo = lo, .hi = hi, .depth = depth};
  const double centre = 0.5 * lo + 0.5 * hi, half = 0.5 * (hi - lo);
  for (int i = 0; i < kPoints; ++i) out.v[i] = centre + half * abscissa(i);
  psi(out.v, out.psi);
  out.highest = *std::max_element(out.psi.begin(), out.psi.end());
  return out;
}

// Integrals of e^{psi - top} times 1, x and x^2, x the coordinate of the parent panel in [-1,1].
std::array<double, 3> integrals(const Panel& panel, double top, double lo, double hi) {
  const double centre = 0.5 * lo + 0.5 * hi, half = 0.5 * (hi - lo);
  const double own = 0.5 * (panel.hi - panel.lo);
  std::array<double, 3> out{};
  for (int i = 0; i < kPoints; ++i) {
    const double x = (panel.v[i] - centre) / half;
    const double density = own * rule_weight(i) * std::exp(panel.psi[i] - top);
    out[0] += density;
    out[1] += density * x;
    out[2] += density * x * x;
  }
  return out;
}

bool agree(const Panel& whole, const Panel& left, const Panel& right, double top, double limit) {
  const auto coarse = integrals(whole, top, whole.lo, whole.hi);
  const auto first = integrals(left, top, whole.lo, whole.hi);
  const auto second = integrals(right, top, whole.lo, whole.hi);
  for (int k = 0; k < 3; ++k) {
    if (!(std::abs(coarse[k] - first[k] - second[k]) <= limit)) return false;
  }
  return true;
}

}  // namespace

PanelNodes panel_nodes(const LogDensity& psi, std::vector<double> breaks,
                       const PanelOptions& options) {
  breaks.erase(std::unique(breaks.begin(), breaks.end()), breaks.end());
  std::vector<Panel> open, done;
  double top = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i + 1 < breaks.size(); ++i) {
    open.push_back(make_panel(psi, breaks[i], breaks[i + 1], 0));
    top = std::max(top, open.back().highest);
  }
  // The highest panels come first, so that `top` and the size of the integral are known early.
  std::sort(open.begin(), open.end(),
            [](const Panel& a, const Panel& b) { return a.highest < b.highest; });
  double scale = 0;  // a running estimate of the integral of e^{psi - top}
  while (!open.empty()) {
    const Panel panel = open.back();
    open.pop_back();
    const double spacing = 0.2 * (panel.hi - panel.lo);  // nodes are closer than this
    const bool is_near = std::min(std::abs(panel.lo), std::abs(panel.hi)) < options.bend_reach;
    const double hidden = (is_near ? options.bend : 1) * spacing * spacing / 8;
    if (panel.highest + hidden < top - kNegligible) continue;
    const double middle = 0.5 * panel.lo + 0.5 * panel.hi;
    if (panel.depth == kDepth || done.size() > kMostPanels ||
        !(panel.lo < middle && middle < panel.hi)) {
      done.push_back(panel);
      continue;
    }
    const Panel left = make_panel(psi, panel.lo, middle, panel.depth + 1);
    const Panel right = make_panel(psi, middle, panel.hi, panel.depth + 1);
    const double before = top;
    top = std::max({top, left.highest, right.highest});
    scale *= std::exp(before - top);
    const double here =
        integrals(left, top, panel.lo, panel.hi)[0] + integrals(right, top, panel.lo, panel.hi)[0];
    const double limit = options.tolerance * std::max(scale, here);
    if (agree(panel, left, right, top, limit)) {
      done.push_back(left);
      done.push_back(right);
      scale += here;
    } else {
      open.push_back(left);
      open.push_back(right);
    }
  }
  std::sort(done.begin(), done.end(), [](const Panel& a, const Panel& b) { return a.lo < b.lo; });
  PanelNodes out;
  const auto n = static_cast<Index>(done.size()) * kPoints;
  out.v.resize(n);
  out.weights.resize(n);
  Index row = 0;
  for (const Panel& panel : done) {
    const double half = 0.5 * (panel.hi - panel.lo);
    for (int i = 0; i < kPoints; ++i, ++row) {
      out.v(row) = panel.v[i];
      out.weights(row) = half * rule_weight(i) * std::exp(panel.psi[i] - top);
    }
  }
  const double total = out.weights.sum();
  out.weights /= total;
  out.log_integral = top + std::log(total);
  return out;
}

}  // namespace esscher
