#include "esscher/estimate/tails.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "esscher/base/error.h"

namespace esscher {
namespace {

// Mean log excess of the k largest over the next one; x sorted decreasingly.
double hill_index(const std::vector<double>& x, std::size_t k) {
  if (!(x[k] > 0)) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (std::size_t i = 0; i < k; ++i) sum += std::log(x[i] / x[k]);
  return sum > 0 ? static_cast<double>(k) / sum : std::numeric_limits<double>::infinity();
}

}  // namespace

TailReport tail_report(const VectorView& samples) {
  TailReport report;
  report.hill = std::numeric_limits<double>::infinity();
  std::vector<double> x(samples.begin(), samples.end());
  const std::size_t n = x.size();
  if (n < 2) return report;
  std::sort(x.begin(), x.end(), std::greater<>());
  double total = 0;
  for (double v : x) total += v;
  if (!(total > 0)) return report;
  // 2 % of the sample, at least ten: fewer is noise, more reads the body of the law as its tail.
  const std::size_t k = std::max<std::size_t>(10, n / 50);
  if (n >= 50) report.hill = hill_index(x, k);
  const std::size_t top = std::max<std::size_t>(1, n / 100);
  double top_sum = 0;
  for (std::size_t i = 0; i < top; ++i) top_sum += x[i];
  report.top_share = top_sum / total;
  const double surely = kMinHill / (1 + 2 / std::sqrt(static_cast<double>(k)));
  if (report.hill < surely) {
    report.reason = "tail index " + to_text(std::round(report.hill * 100) / 100) +
                    " < 2: the variance of the error over queries looks infinite";
  } else if (n >= 50 && report.top_share > kMaxTopShare) {
    report.reason = "the largest 1 % of the queries carries " +
                    to_text(std::round(report.top_share * 100)) + " % of the average";
  }
  report.heavy = !report.reason.empty();
  return report;
}

}  // namespace esscher
