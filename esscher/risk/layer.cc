#include "esscher/risk/layer.h"

#include <algorithm>
#include <sstream>

#include "esscher/base/error.h"

namespace esscher {
namespace {

Matrix stacked(const Layer& layer, Matrix LayerHead::*matrix, Index rows) {
  Matrix out(rows * static_cast<Index>(layer.heads.size()), layer.token_dim());
  for (std::size_t h = 0; h < layer.heads.size(); ++h) {
    out.middleRows(static_cast<Index>(h) * rows, rows) = layer.heads[h].*matrix;
  }
  return out;
}

}  // namespace

bool Layer::is_all(ModelKind kind) const {
  return std::ranges::all_of(heads, [&](const LayerHead& head) { return head.kind == kind; });
}

std::string Layer::name() const {
  if (heads.empty()) return "residual";
  if (is_all(ModelKind::softmax)) return "softmax";
  return is_all(ModelKind::linear) ? "linear attention" : "mixed";
}

std::string Layer::kinds_text() const {
  if (heads.empty()) return "residual";
  const bool alike = is_all(heads.front().kind);
  std::string out(esscher::name(heads.front().kind));
  for (std::size_t h = 1; !alike && h < heads.size(); ++h) {
    out += "+" + std::string(esscher::name(heads[h].kind));
  }
  return out;
}

Matrix Layer::stacked_U() const { return stacked(*this, &LayerHead::U, token_dim()); }
Matrix Layer::stacked_V() const { return stacked(*this, &LayerHead::V, out_dim()); }

Layer Layer::of_stacked(const std::string& kinds, const MatrixView& U, const MatrixView& V,
                        const MatrixView& W) {
  const Index m = W.rows(), D = W.cols(), H = U.rows() / D;
  check_dimension("layer", "U rows", U.rows(), H * D);
  check_dimension("layer", "V rows", V.rows(), H * m);
  std::vector<ModelKind> of_heads;
  std::istringstream words(kinds);
  for (std::string word; H > 0 && std::getline(words, word, '+');) {
    of_heads.push_back(parse_enum<ModelKind>(word));
  }
  if (of_heads.size() == 1) of_heads.resize(static_cast<std::size_t>(H), of_heads.front());
  check_dimension("layer", "kinds", static_cast<Index>(of_heads.size()), H);
  Layer out{W, {}};
  for (Index h = 0; h < H; ++h) {
    out.heads.push_back(
        {of_heads[static_cast<std::size_t>(h)], U.middleRows(h * D, D), V.middleRows(h * m, m)});
  }
  out.check(D, m);
  return out;
}

void Layer::check(Index D, Index m) const {
  const auto shape = [](const std::string& what, const Matrix& M, Index rows, Index cols) {
    check_dimension("layer", what + " rows", M.rows(), rows);
    check_dimension("layer", what + " columns", M.cols(), cols);
    check_finite("layer", what, M);
  };
  shape("W", W, m, D);
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const std::string place = heads.size() == 1 ? "" : "[" + std::to_string(h) + "]";
    shape("U" + place, heads[h].U, D, D);
    shape("V" + place, heads[h].V, m, D);
  }
}

Layer Layer::zero() const {
  Layer out = *this;
  return out *= 0;
}

Layer& Layer::operator+=(const Layer& other) {
  W += other.W;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    heads[h].U += other.heads[h].U;
    heads[h].V += other.heads[h].V;
  }
  return *this;
}

Layer& Layer::operator*=(double factor) {
  W *= factor;
  for (LayerHead& head : heads) {
    head.U *= factor;
    head.V *= factor;
  }
  return *this;
}

Vector Layer::parameters() const {
  Index size = W.size();
  for (const LayerHead& head : heads) size += head.U.size() + head.V.size();
  Vector out(size);
  Index at = 0;
  const auto put = [&](const Matrix& M) {
    out.segment(at, M.size()) = Eigen::Map<const Vector>(M.data(), M.size());
    at += M.size();
  };
  put(W);
  for (const LayerHead& head : heads) {
    put(head.U);
    put(head.V);
  }
  return out;
}

Layer Layer::with(const VectorView& parameters) const {
  Layer out = *this;
  Index at = 0;
  const auto take = [&](Matrix& M) {
    check_dimension("layer", "parameters", std::min(parameters.size(), at + M.size()),
                    at + M.size());
    Eigen::Map<Vector>(M.data(), M.size()) = parameters.segment(at, M.size());
    at += M.size();
  };
  take(out.W);
  for (LayerHead& head : out.heads) {
    take(head.U);
    take(head.V);
  }
  check_dimension("layer", "parameters", parameters.size(), at);
  return out;
}

}  // namespace esscher
