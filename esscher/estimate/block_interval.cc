#include "esscher/estimate/block_interval.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/estimate/quantile.h"
#include "esscher/random/stream.h"

namespace esscher {
namespace {

constexpr int kResamples = 1000;
constexpr std::size_t kFewBlocks = 16;
constexpr double kSkewed = 2;
constexpr double kMostCorrelated = 0.9;

// Block means, weighted so that their mean is the mean of x where blocks differ in size by one.
std::vector<double> block_means(std::span<const double> x, std::size_t blocks) {
  const std::size_t n = x.size();
  std::vector<double> out(blocks);
  for (std::size_t i = 0; i < blocks; ++i) {
    double sum = 0;
    for (std::size_t j = i * n / blocks; j < (i + 1) * n / blocks; ++j) sum += x[j];
    out[i] = sum * static_cast<double>(blocks) / static_cast<double>(n);
  }
  return out;
}

struct Central {
  double mean = 0;
  double error = 0;        // standard error of the mean
  double correlation = 0;  // of neighbours, corrected for its bias -1/k
  double skewness = 0;
};

Central central(std::span<const double> v) {
  const auto k = static_cast<double>(v.size());
  Central out;
  for (const double x : v) out.mean += x / k;
  double square = 0, cube = 0, neighbours = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double d = v[i] - out.mean;
    square += d * d;
    cube += d * d * d;
    if (i > 0) neighbours += d * (v[i - 1] - out.mean);
  }
  out.error = std::sqrt(square / (k - 1) / k);
  if (square > 0) {
    out.correlation = neighbours / square + 1 / k;
    out.skewness = cube / k / std::pow(square / k, 1.5);
  }
  return out;
}

// t* of every resample; one that draws a single block again and again has none.
std::vector<double> studentised(std::span<const double> v, double mean) {
  std::vector<double> out;
  std::vector<double> drawn(v.size());
  for (int r = 0; r < kResamples; ++r) {
    const Stream stream = Stream(0xb10c).split(static_cast<std::uint64_t>(r));
    for (std::size_t i = 0; i < v.size(); ++i) {
      const auto at = static_cast<std::size_t>(stream.uniform(i) * static_cast<double>(v.size()));
      drawn[i] = v[std::min(at, v.size() - 1)];
    }
    const Central c = central(drawn);
    if (c.error > 0) out.push_back((c.mean - mean) / c.error);
  }
  return out;
}

}  // namespace

BlockInterval block_interval(std::span<const double> x, Index block) {
  if (x.empty()) throw ArgumentError("block_interval: the series is empty");
  if (block < 1)
    throw ArgumentError("block_interval: block is " + std::to_string(block) +
                        ", expected at least 1");
  const std::size_t blocks = std::max<std::size_t>(1, x.size() / static_cast<std::size_t>(block));
  const std::vector<double> v = block_means(x, blocks);
  BlockInterval out;
  if (blocks < 2) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    return {.mean = v.front(), .low = none, .high = none, .heavy = true};
  }
  const Central c = central(v);
  out.mean = out.low = out.high = c.mean;
  out.heavy = blocks < kFewBlocks || c.skewness > kSkewed;
  const std::vector<double> t = studentised(v, c.mean);
  if (t.empty()) return out;  // every block has the same mean
  const double r = std::clamp(c.correlation, 0.0, kMostCorrelated);
  const double spread = c.error * std::sqrt((1 + r) / (1 - r));
  out.low = c.mean - quantile(t, 0.975) * spread;
  out.high = c.mean - quantile(t, 0.025) * spread;
  return out;
}

}  // namespace esscher
