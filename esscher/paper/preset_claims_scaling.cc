// Claims about token laws under scores that grow with the prompt.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "esscher/base/number_text.h"
#include "esscher/config/tokens.h"
#include "esscher/paper/detail/preset_subject.h"

namespace esscher::paper {
namespace {

double longest_of(const PublishedTokens& tokens) {
  return *std::max_element(tokens.lengths.begin(), tokens.lengths.end());
}

// The kappa at which E sum omega^2 is one half at n tokens: it falls as kappa grows.
double half_kappa(double n, std::int64_t dim) {
  double low = std::log(0.05), high = std::log(50.0);
  for (int i = 0; i < 20; ++i) {
    const double middle = 0.5 * (low + high);
    const double beta = sphere_scale(n, dim, std::exp(middle));
    (sphere_weight_square(n, dim, beta) > 0.5 ? low : high) = middle;
  }
  return std::exp(high);
}

}  // namespace

void equiangular_scale(Subject& s) {
  const PublishedTokens tokens = read_published_tokens(s.config().root());
  const double n = longest_of(tokens);
  for (const double gamma : tokens.gamma) {
    const EquiangularRow row = equiangular_row(n, tokens.rho, gamma);
    s.equal("the inner product of new tokens has its limit, γ = " + brief(gamma), row.inner_product,
            row.predicted_inner_product, 1e-3);
  }
  const EquiangularRow at = equiangular_row(n, tokens.rho, 1);
  s.equal("a token weighs one half on itself at γ = 1/(1 − ρ)", at.boundary, at.predicted_boundary,
          1e-3);
  s.no_number("how fast the limits are reached, and what several layers do");
}

void sphere_scale_is_critical(Subject& s) {
  const PublishedTokens tokens = read_published_tokens(s.config().root());
  const double n = longest_of(tokens);
  double few = std::numeric_limits<double>::infinity(), many = 0;
  for (const double kappa : tokens.kappa) {
    const SphereRow row = sphere_row(n, tokens.dim, kappa);
    s.equal("E Σω² has its limit, κ = " + brief(kappa), row.H, row.predicted_H, 1e-4);
    few = std::min(few, kappa);
    many = std::max(many, kappa);
  }
  s.above("one token has most of the weight where few are in reach: E Σω²",
          sphere_row(n, tokens.dim, few).H, 0.9);
  s.below("many share it where many are in reach: E Σω²", sphere_row(n, tokens.dim, many).H, 0.05);
  const double small = 1e4, large = 1e12;
  const auto scale = [&](double at) {
    return std::log(sphere_scale(at, tokens.dim, half_kappa(at, tokens.dim)));
  };
  s.equal("the β at which E Σω² is one half grows like n to the power 2/(d − 1): exponent",
          (scale(large) - scale(small)) / std::log(large / small),
          2 / static_cast<double>(tokens.dim - 1), 1e-3);
  s.no_number("the limiting laws of single weights and of the output");
}

}  // namespace esscher::paper
