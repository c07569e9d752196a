// An attention layer with a residual, the model of tasks beyond regression:
//
//   out(z) = W z + sum_h V_h T_h(z),   T_h = mean of the tokens tilted by a_h = U_h z     (softmax)
//                                      T_h = S a_h, S the second moment of the tokens     (linear)
//
// z in R^D is the query, tokens are in R^D, out is in R^m. Tasks with labels have m = 1: their
// matrices are the last rows of square ones, which is all that acts.
#pragma once

#include <string>
#include <vector>

#include "esscher/base/linalg.h"
#include "esscher/risk/model_kind.h"

namespace esscher {

struct LayerHead {
  ModelKind kind = ModelKind::softmax;
  Matrix U;  // [D,D]
  Matrix V;  // [m,D]
};

struct Layer {
  Matrix W;  // [m,D]
  std::vector<LayerHead> heads;

  [[nodiscard]] Index token_dim() const { return W.cols(); }
  [[nodiscard]] Index out_dim() const { return W.rows(); }
  [[nodiscard]] bool is_all(ModelKind kind) const;
  // "softmax", "linear attention" or "mixed"; "residual" without a head.
  [[nodiscard]] std::string name() const;
  // Throws DimensionError naming the matrix that does not fit tokens in R^D and outputs in R^m.
  void check(Index D, Index m) const;

  // The kinds of the heads as one word: "softmax", "linear", or "softmax+linear" and so on where they
  // differ; "residual" without a head.
  [[nodiscard]] std::string kinds_text() const;
  // The matrices of the heads one below the other: U [H D,D], V [H m,D].
  [[nodiscard]] Matrix stacked_U() const;
  [[nodiscard]] Matrix stacked_V() const;
  // The layer of these; throws ArgumentError or DimensionError if they do not fit together.
  static Layer of_stacked(const std::string& kinds, const MatrixView& U, const MatrixView& V,
                          const MatrixView& W);

  // The same shapes, all entries 0.
  [[nodiscard]] Layer zero() const;
  Layer& operator+=(const Layer& other);
  Layer& operator*=(double factor);

  // All entries one after another: W, then U and V of each head, row by row.
  [[nodiscard]] Vector parameters() const;
  // The same layer with these entries.
  [[nodiscard]] Layer with(const VectorView& parameters) const;
};

}  // namespace esscher
