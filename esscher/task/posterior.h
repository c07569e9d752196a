// The best prediction E[t | prompt, z] where it has no formula: an average of E[t | law, z] over
// the posterior of the law, by Markov chains in the normals g behind the law.
//
// A step is one of elliptical slice sampling (Murray, Adams and MacKay 2010): it leaves N(g; 0, I)
// p(prompt, z | law(g)) as it is and has nothing to tune. The density must be positive everywhere:
// labels without noise get e^-30 for each one that a law cannot have given, so that a chain finds
// what is possible from anywhere.
//
// How long a chain needs is not known. In simulations it can be bracketed, because the normals that
// the prompt was drawn with are a draw from the posterior themselves. With f(g) = E[t | law(g), z],
// f_0 at these normals and P the transition of n steps,
//
//   E|P f(g_0) - f_0|^2 <= E|f_0 - E[t | prompt, z]|^2 <= E|q - f_0|^2
//
// for every prediction q of prompt and query. (Spectrum of P in [0, 1]: the left side is a sum of
// (1 - lambda)^2 where the middle has 1.) See risk/posterior_risk.h.
#pragma once

#include <functional>

#include "esscher/base/enum_names.h"
#include "esscher/base/linalg.h"
#include "esscher/random/stream.h"

namespace esscher {

// How the best prediction from a finite prompt is found.
enum class PosteriorBy { formula, quadrature, chains };

constexpr auto enum_names(PosteriorBy) {
  return EnumNames<PosteriorBy, 3>{"way to the best prediction",
                                   {{{PosteriorBy::formula, "formula"},
                                     {PosteriorBy::quadrature, "quadrature"},
                                     {PosteriorBy::chains, "chains"}}}};
}

// What a prompt and a query say about their law, as functions of the normals behind the law.
struct LawEvidence {
  std::function<double(const Vector& normals)> log_density;  // of both, up to a constant
  std::function<Vector(const Vector& normals)> mean;         // E[t | law, z]
};

struct ChainOptions {
  int burn = 96;
  int keep = 96;
};

// The mean of `mean` over the kept steps of a chain that starts at these normals.
Vector chain_mean(const LawEvidence& evidence, const Vector& start, const ChainOptions& options,
                  const Stream& stream);

// The same from so many normals drawn from the prior.
Vector chain_mean(const LawEvidence& evidence, Index normals, const ChainOptions& options,
                  const Stream& stream);

}  // namespace esscher
