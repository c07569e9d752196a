#include "esscher/config/tokens.h"

#include <cmath>
#include <string>

#include "esscher/base/number_text.h"

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

// One cell per value and length.
template <class Row, class RowAt>
Cells<Row> cells_of(const std::string& value, const std::vector<double>& values,
                    const std::vector<double>& lengths, const RowAt& row_at) {
  Cells<Row> out;
  for (const double v : values) {
    for (const double L : lengths) {
      out.keys.push_back(value + "=" + to_text(v) + ",L=" + to_text(L));
    }
  }
  out.compute = [=](std::size_t i) {
    return std::vector<Row>{row_at(values[i / lengths.size()], lengths[i % lengths.size()])};
  };
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
    if (out.gamma.empty()) table.fail("gamma", "at least one number");
  } else {
    out.dim = table.integer_or("dim", 3, Range::between(2, 1000));
    out.kappa = table.numbers("kappa", Range::positive());
    if (out.kappa.empty()) table.fail("kappa", "at least one number");
  }
  return out;
}

Cells<EquiangularRow> equiangular_cells(const PublishedTokens& tokens) {
  return cells_of<EquiangularRow>(
      "gamma", tokens.gamma, tokens.lengths,
      [rho = tokens.rho](double gamma, double L) { return equiangular_row(L, rho, gamma); });
}

Cells<SphereRow> sphere_cells(const PublishedTokens& tokens) {
  return cells_of<SphereRow>(
      "kappa", tokens.kappa, tokens.lengths,
      [dim = tokens.dim](double kappa, double L) { return sphere_row(L, dim, kappa); });
}

}  // namespace esscher
