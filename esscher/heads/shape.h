// Are the keys Gaussian as far as a head can tell? A length may be promised only to Gaussian keys:
// the scores of one query have cumulants, and they enter its tilted mean one by one,
//
//   E_a[s] - E[s] = tau^2 (1 + tau g / 2 + tau^2 k / 6 + ..),   g skewness, k excess kurtosis of s
//
// so that the two terms behind the 1 are what the limit misses at infinite length, in the
// directions and at the tilts that the head uses. The statistic is their size,
//
//   departure = median over queries of sqrt((tau g / 2)^2 + (tau^2 k / 6)^2)
//
// with sample moments. Cumulants along all directions determine the joint ones (polarisation), so
// nothing of third or fourth order can hide between queries that point everywhere.
//
// Null: n independent Gaussian keys with the covariance of the scores that were seen. The law of the
// departure is simulated with kShapeReplicates prompts from a fixed stream, with the deviations tau
// that were seen: g and k of Gaussian scores do not depend on tau (Basu's theorem), so the level is
// right at any n. Gaussian keys exceed `limit` with probability kShapeLevel.
//
// Refused are keys that depart by more than `limit` and by more than a quarter of `harm`. Many keys
// show departures that would change nothing; such keys may be promised a length.
//
// Power: how often the same test refuses keys whose limit is wrong by `harm`, relative to |T - Vbar|
// at infinite length. In white coordinates of the scores these keys are, with g standard normal,
//
//   even    sqrt(1-c^2) g + c y, y = +1 or -1 per coordinate: clusters of one size, light tails
//   uneven  the same with y = sqrt(7) with probability 1/8, else -1/sqrt(7): small clusters, skewed
//   spread  sqrt(1 + e) g or sqrt(1 - e) g with probability 1/2 each: heavy tails
//
// and c or e in (0, 1] is as small as such harm allows, from their tilted means in closed form:
// (1-c^2) b + c lambda'(c b) per coordinate, b (1 + e tanh(e tau^2 / 2)). The power is that of the
// family that is seen worst. A family that cannot do such harm does not count.
//
// Assumed: keys are independent draws of one law, and what n of them cannot show is not there.
// Keys that depend on their neighbours raise the false alarms, which only costs promises, and lower
// the power below what is stated.
#pragma once

#include <algorithm>
#include <optional>

#include "esscher/base/linalg.h"
#include "esscher/random/stream.h"

namespace esscher {

inline constexpr double kShapeLevel = 0.05;
inline constexpr Index kShapeReplicates = 99;  // (99 + 1) kShapeLevel is a whole number
inline constexpr double kHarmless = 0.25;      // a departure up to this share of harm is harmless

struct KeyShape {
  double departure = 0;  // of the keys at hand
  double typical = 0;    // its median for Gaussian keys
  double limit = 0;      // Gaussian keys exceed this with probability kShapeLevel
  double harm = 0;       // error of the limit that the power is for
  // The probability of being refused with that error; 1 if no family can have it. It is not computed
  // for keys that are refused.
  std::optional<double> power = {};

  [[nodiscard]] double bar() const { return std::max(limit, kHarmless * harm); }
  [[nodiscard]] bool refused() const { return departure > bar(); }
};

// The standard deviations tau [queries] of scores [n,queries].
Vector score_deviations(const MatrixView& scores);

// The departure of scores [n,queries] with skewness and kurtosis of their own at deviations tau
// [queries]. Scores that do not vary depart by 0.
double departure(const MatrixView& scores, const Vector& tau);

// scores [n,queries] of the keys. None if no query's scores vary or n < 4: nothing can be tested.
// harm in (0, 1).
std::optional<KeyShape> key_shape(const MatrixView& scores, double harm, const Stream& stream);

// Keys of the families above, by their scores. `loadings` [queries,r] are the scores of the white
// coordinates: scores = loadings * x with x of covariance I.
enum class ShapeFamily { even, uneven, spread };

// The median over queries of the limit's relative error if the keys are of the family with strength
// c or e in [0, 1]; it rises with the strength.
double family_harm(ShapeFamily family, double strength, const Matrix& loadings);

// The smallest strength that does such harm; none if strength 1 does less.
std::optional<double> harmful_strength(ShapeFamily family, double harm, const Matrix& loadings);

// Scores [n,queries] of n keys. `gaussian` [n,queries] are the scores of n Gaussian keys with these
// loadings, of a stream other than `stream`.
Matrix family_scores(ShapeFamily family, double strength, const Matrix& loadings, Matrix gaussian,
                     const Stream& stream);

}  // namespace esscher
