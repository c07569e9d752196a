#include "esscher/config/tokens.h"

#include <cmath>

namespace esscher {
namespace {

const std::vector<double> kLengths = {1e2, 1e3, 1e4, 1e6, 1e9, 1e12, 1e15};

std::vector<double> lengths_of(const Table& table) {
  if (!table.has("lengths")) return kLengths;
  std::vector<double> out;
  for (const Length& length : table.lengths("lengths")) {
    if (length.is_infinite() || length.count() < 2) table.fail("lengths", "integers >= 2");
    out.push_back(static_cast<double>(length.count()));
  }
  return out;
}

}  // namespace

PublishedTokens read_published_tokens(const Table& root) {
  const Table table = root.table("tokens");
  PublishedTokens out{.kind = parse_enum<TokenKind>(table.choice(
                          "kind", {name(TokenKind::equiangular), name(TokenKind::sphere)}))};
  out.lengths = lengths_of(table);
  if (out.kind == TokenKind::equiangular) {
    out.rho = table.number_or("rho", 0.5, Range{.low = 0, .high = 1, .high_open = true});
    out.gamma = table.numbers("gamma", Range{.low = 0});
  } else {
    out.dim = table.integer_or("dim", 3, Range::between(2, 1000));
    out.kappa = table.numbers("kappa", Range::positive());
  }
  return out;
}

std::vector<EquiangularRow> equiangular_rows(const PublishedTokens& tokens) {
  std::vector<EquiangularRow> out;
  for (const double gamma : tokens.gamma) {
    for (const double L : tokens.lengths) out.push_back(equiangular_row(L, tokens.rho, gamma));
  }
  return out;
}

std::vector<SphereRow> sphere_rows(const PublishedTokens& tokens) {
  std::vector<SphereRow> out;
  for (const double kappa : tokens.kappa) {
    for (const double L : tokens.lengths) out.push_back(sphere_row(L, tokens.dim, kappa));
  }
  return out;
}

}  // namespace esscher
