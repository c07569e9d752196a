// [tokens]: token laws of the literature on self-attention (scaling/published_tokens.h).
//
//   kind    "equiangular" or "sphere"
//   rho     inner product of equiangular tokens; gamma is a list of score scales over log n
//   dim     dimension of the sphere's space; kappa is a list of tokens within a gap of 1
//   lengths prompt lengths, 100 to 10^15 unless given
#pragma once

#include <vector>

#include "esscher/base/cells.h"
#include "esscher/base/enum_names.h"
#include "esscher/config/table.h"
#include "esscher/scaling/published_tokens.h"

namespace esscher {

enum class TokenKind { equiangular, sphere };

constexpr auto enum_names(TokenKind) {
  return EnumNames<TokenKind, 2>{
      "kind of tokens", {{{TokenKind::equiangular, "equiangular"}, {TokenKind::sphere, "sphere"}}}};
}

struct PublishedTokens {
  TokenKind kind = TokenKind::equiangular;
  double rho = 0.5;
  std::vector<double> gamma = {};
  std::int64_t dim = 3;
  std::vector<double> kappa = {};
  std::vector<double> lengths = {};
};

PublishedTokens read_published_tokens(const Table& root);

// One cell and row per gamma (or kappa) and length, lengths innermost.
Cells<EquiangularRow> equiangular_cells(const PublishedTokens& tokens);
Cells<SphereRow> sphere_cells(const PublishedTokens& tokens);

}  // namespace esscher
