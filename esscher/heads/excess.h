// Is the error of the Gaussian limit larger than that of Gaussian keys? The control (heads/control.h)
// is an expectation; a head is one prompt, so the comparison is a test. Its statistic is the median
// over a few queries of lin_c, with the limit fitted to the same prompt,
//
//   lin_c = |sum_l (omega_l - 1/n - (s_l - sbar)/n) v_l| / |sum_l (omega_l - 1/n) v_l|
//
// Null: n independent Gaussian keys and values. Their means and covariances are sufficient, so the
// law of the statistic given those that were seen depends on nothing else: kExcessReplicates prompts
// are drawn with exactly these scores' covariance. With x the white coordinates of the scores, values
// are v = B x + rho, and given x the sums over rho are normal,
//
//   sum_l g_l v_l = B sum_l g_l x_l + N(0, |g_perp|^2 Cov(rho)),   g_perp = g minus its part along 1, x
//
// so that no value is drawn one by one. The error of a Gaussian prompt is among the two largest of
// kExcessReplicates + 1 with probability kExcessLevel, whatever n is; only then is it refused. Keys
// that depend on their neighbours are refused more often.
#pragma once

#include <optional>
#include <vector>

#include "esscher/base/linalg.h"
#include "esscher/random/stream.h"

namespace esscher {

inline constexpr double kExcessLevel = 0.05;
inline constexpr Index kExcessReplicates = 39;  // (39 + 1) kExcessLevel is a whole number
inline constexpr Index kExcessKeys = 4096;      // at most; longer prompts are tested on a prefix

struct ErrorExcess {
  double error = 0;    // of the queries at hand
  double typical = 0;  // its median for Gaussian keys
  double limit = 0;    // Gaussian keys exceed this with probability kExcessLevel
  double p = 1;        // (1 + prompts of Gaussian keys that err as much) / (1 + replicates)
  Index keys = 0;
  Index queries = 0;

  [[nodiscard]] bool refused() const { return error > limit; }
};

// lin_c per query. scores [n,q] of the queries, values [n,dv]; query i sees the keys l < ends[i]. An
// output that does not move counts 0.
std::vector<double> limit_errors(const MatrixView& scores, const MatrixView& values,
                                 const std::vector<Index>& ends);

// None if no query's scores vary or if there are fewer keys than queries and four more.
std::optional<ErrorExcess> error_excess(const MatrixView& scores, const MatrixView& values,
                                        const std::vector<Index>& ends, const Stream& stream);

}  // namespace esscher
