// Is a sample mean trustworthy? A mean whose summands have a tail index near or below 2 has no
// central limit theorem at its usual speed: its standard error is itself noise, and usually too
// small.
//
//   Hill: 1/alpha = average over the k largest of log(x_(i) / x_(k+1)),  P(X > x) ~ x^-alpha
//   top share: fraction of the sum carried by the largest 1 % of the samples
#pragma once

#include <string>

#include "esscher/base/linalg.h"

namespace esscher {

struct TailReport {
  double hill = 0;       // tail index alpha; infinity if the largest samples are equal
  double top_share = 0;  // 0..1
  bool heavy = false;    // hill surely < kMinHill, or top_share > kMaxTopShare
  std::string reason;    // one sentence when heavy, else empty
};

inline constexpr double kMinHill = 2.0;  // below: infinite variance
inline constexpr double kMaxTopShare =
    0.33;  // above: a third of the sum hangs on 1 % of the samples

// The tail index of k exceedances has the relative error 1/sqrt(k). It is called below kMinHill where
// 1/hill is above 1/kMinHill by two such errors; otherwise half of all mild samples would be heavy.
//
// samples [n] of a non-negative quantity. Fewer than 50 samples or an all-zero sample: never heavy
// by Hill, because ten exceedances are the least a tail index can be read from.
TailReport tail_report(const VectorView& samples);

}  // namespace esscher
