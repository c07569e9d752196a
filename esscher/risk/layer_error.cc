#include "esscher/risk/layer_error.h"

#include <vector>

#include "esscher/base/error.h"
#include "esscher/risk/detail/prompt_sums.h"
#include "esscher/risk/draw_error.h"

namespace esscher {
namespace {

Vector head_mean(const LayerHead& head, const AnyMeasure& tokens, const Vector& a) {
  return head_moments(tokens, a, Vector::Zero(a.size()), head.kind, false).mean;
}

}  // namespace

Vector layer_output(const Layer& layer, const AnyMeasure& tokens, const VectorView& z) {
  Vector out = layer.W * z;
  for (const LayerHead& head : layer.heads) out += head.V * head_mean(head, tokens, head.U * z);
  return out;
}

double layer_error(const Layer& layer, const AnyMeasure& tokens, const VectorView& z,
                   const VectorView& target, Layer* gradient, TaskLoss loss) {
  std::vector<Vector> means;
  Vector out = layer.W * z, miss;
  for (const LayerHead& head : layer.heads) {
    means.push_back(head_mean(head, tokens, head.U * z));
    out += head.V * means.back();
  }
  const double value = prediction_loss(loss, out, target, miss);
  if (gradient == nullptr) return value;
  gradient->W += miss * z.transpose();
  for (std::size_t h = 0; h < layer.heads.size(); ++h) {
    const LayerHead& head = layer.heads[h];
    const Vector r = head.V.transpose() * miss;
    const Vector product = head_moments(tokens, head.U * z, r, head.kind, true).product;
    gradient->heads[h].V += miss * means[h].transpose();
    gradient->heads[h].U += product * z.transpose();
  }
  return value;
}

bool has_prompt_formula(const Layer& layer) {
  return layer.is_all(ModelKind::linear) || layer.is_all(ModelKind::softmax);
}

bool reads_pairs(const Layer& layer) {
  return !layer.is_all(ModelKind::linear) && layer.heads.size() > 1;
}

double prompt_error(const Layer& layer, const TokenLaw& tokens, Length L, const VectorView& z,
                    const VectorView& target, Layer* gradient) {
  check_dimension("prompt error", "tokens", tokens.dim(), layer.token_dim());
  check_dimension("prompt error", "query", z.size(), layer.token_dim());
  check_dimension("prompt error", "target", target.size(), layer.out_dim());
  if (L.is_infinite() || layer.heads.empty()) {
    return layer_error(layer, tokens.measure(), z, target, gradient);
  }
  if (layer.is_all(ModelKind::linear)) {
    return detail::linear_error(layer, *tokens.mixture(Vector::Zero(z.size())), L.count(), z,
                                target, gradient);
  }
  if (layer.heads.size() == 1) {
    return detail::softmax_error(layer, tokens, L.count(), z, target, gradient);
  }
  if (layer.is_all(ModelKind::softmax)) {
    return detail::softmax_heads_error(layer, tokens, L.count(), z, target, gradient);
  }
  throw CapabilityError("layer: softmax and linear heads in one layer have no formula at L = " +
                        L.text() + "; use engine = direct, which draws prompts, or length inf");
}

}  // namespace esscher
