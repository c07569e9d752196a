// Draws of h = sum omega^2 among n iid scores N(0, tau^2), n up to 1e300: its typical size, which the
// mean does not tell where rare prompts carry it.
//
// Up to kAllScores all scores are drawn. Beyond, the kTopScores largest are drawn exactly: their
// tail probabilities are (E_1 + .. + E_k) / (E_1 + .. + E_{n+1}) with exponential E_i. Given the last
// of them, g, the others are independent and below g; their sums of e^s and e^{2s} are replaced by
//
//   N(m_1, v)   m_j = (n - k) E[e^{j tau x}; x < g] / Phi(g),   v = m_2 - m_1^2 / (n - k)
//
// and by m_2. They fluctuate by a share of about kTopScores^{-1/2} of e^{tau g} each, so that the law
// of h is right to a share of 1/kTopScores (tests/scaling).
#pragma once

#include <optional>
#include <vector>

#include "esscher/base/estimate.h"
#include "esscher/random/stream.h"
#include "esscher/scaling/score_model.h"

namespace esscher {

inline constexpr int kAllScores = 2048;
inline constexpr int kTopScores = 512;

// Draw i of h; a function of (stream, i).
double sampled_weight_square(double n, double tau, const Stream& stream, std::uint64_t i);

// The median of h over `draws` prompts and its standard error, from the order statistics around it.
// Absent for a layer where draws * n is above kMaxDrawnTokens, because whole tokens are drawn there.
inline constexpr double kMaxDrawnTokens = 2e7;
std::optional<Estimate> median_weight_square(const ScoreModel& scores, double f, double n,
                                             int draws, const Stream& stream);

}  // namespace esscher
