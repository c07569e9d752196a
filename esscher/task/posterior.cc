#include "esscher/task/posterior.h"

#include <cmath>
#include <cstdint>
#include <numbers>

namespace esscher {
namespace {

Vector drawn_normals(Index n, const Stream& stream) {
  Vector out(n);
  stream.fill_normal(0, {out.data(), static_cast<std::size_t>(n)});
  return out;
}

struct State {
  Vector normals;
  double log_density = 0;
};

// The bracket of angles shrinks towards 0, where the density is that of the state itself.
void step(const LawEvidence& evidence, const Stream& stream, State& at) {
  constexpr int kMostShrinkings = 1000;
  const Vector other = drawn_normals(at.normals.size(), stream.split(0));
  const Stream dice = stream.split(1);
  const double level = at.log_density + std::log(dice.uniform(0));
  double angle = 2 * std::numbers::pi * dice.uniform(1);
  double low = angle - 2 * std::numbers::pi, high = angle;
  for (std::uint64_t i = 2; i < kMostShrinkings; ++i) {
    const Vector next = std::cos(angle) * at.normals + std::sin(angle) * other;
    const double density = evidence.log_density(next);
    if (density > level) {
      at = {next, density};
      return;
    }
    (angle < 0 ? low : high) = angle;
    angle = low + (high - low) * dice.uniform(i);
  }
}

Vector mean_of(const LawEvidence& evidence, State at, const ChainOptions& options,
               const Stream& stream) {
  Vector sum;
  for (int i = 0; i < options.burn + options.keep; ++i) {
    step(evidence, stream.split(static_cast<std::uint64_t>(i)), at);
    if (i < options.burn) continue;
    const Vector own = evidence.mean(at.normals);
    if (sum.size() == 0) sum = Vector::Zero(own.size());
    sum += own;
  }
  return sum / static_cast<double>(options.keep);
}

}  // namespace

Vector chain_mean(const LawEvidence& evidence, const Vector& start, const ChainOptions& options,
                  const Stream& stream) {
  return mean_of(evidence, {start, evidence.log_density(start)}, options, stream);
}

Vector chain_mean(const LawEvidence& evidence, Index normals, const ChainOptions& options,
                  const Stream& stream) {
  return chain_mean(evidence, drawn_normals(normals, stream.split(0)), options, stream.split(1));
}

}  // namespace esscher
