#include "esscher/model/forward.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/estimate/quantile.h"
#include "esscher/tilt/many.h"

namespace esscher {
namespace {

MatrixF apply(const Linear& linear, const MatrixF& x) {
  MatrixF y = times_transposed(x, linear.W);
  if (linear.b.size() > 0) y.rowwise() += linear.b.transpose();
  return y;
}

// RMSNorm x / sqrt(mean x^2 + eps) * scale, or LayerNorm with mean and shift. Each entry is rounded
// once: a factor 1 / sqrt(..) in single precision would move all entries of a row the same way, which
// costs more than the rounding of everything else together.
MatrixF normed(const ModelSpec& spec, const Norm& norm, const MatrixF& x) {
  MatrixF y(x.rows(), x.cols());
  for (Index i = 0; i < y.rows(); ++i) {
    Eigen::RowVectorXd row = x.row(i).cast<double>();
    if (spec.family == ModelFamily::gpt2) row.array() -= row.mean();
    const double square = row.squaredNorm() / static_cast<double>(row.size());
    row.array() *= norm.scale.transpose().cast<double>().array();
    row /= std::sqrt(square + spec.norm_eps);
    if (spec.family == ModelFamily::gpt2) row += norm.shift.transpose().cast<double>();
    y.row(i) = row.cast<float>();
  }
  return y;
}

double gelu(double u) {
  const double c = std::sqrt(2.0 / std::numbers::pi);
  return 0.5 * u * (1.0 + std::tanh(c * (u + 0.044715 * u * u * u)));
}

MatrixF feed_forward(const ModelSpec& spec, const ModelLayer& layer, const MatrixF& x) {
  MatrixF up = apply(layer.up, x);
  if (spec.family == ModelFamily::llama) {
    const Matrix gate = apply(layer.gate, x).cast<double>();
    up = (up.cast<double>().array() * gate.array() / (1.0 + (-gate.array()).exp())).cast<float>();
  } else {
    up = up.cast<double>().unaryExpr(&gelu).cast<float>();
  }
  return apply(layer.down, up);
}

MatrixF embed(const Model& model, std::span<const Index> tokens) {
  MatrixF x(static_cast<Index>(tokens.size()), model.spec.dim);
  for (Index i = 0; i < x.rows(); ++i) {
    x.row(i) = model.embedding.row(tokens[static_cast<std::size_t>(i)]);
    if (model.spec.family == ModelFamily::gpt2) x.row(i) += model.positions.row(i);
  }
  return x;
}

Matrix attention_outputs(const Model& model, Index layer, const MatrixF& x, const HeadRule& rule) {
  const ModelSpec& s = model.spec;
  const ModelLayer& weights = model.layers[static_cast<std::size_t>(layer)];
  const MatrixF q = apply(weights.q, x);
  const MatrixF k = apply(weights.k, x);
  const MatrixF v = apply(weights.v, x);
  Matrix out(x.rows(), s.heads * s.head_dim);
  parallel_for(s.heads, [&](std::int64_t h) {
    const Index head = static_cast<Index>(h);
    const Index group = head * s.kv_heads / s.heads;
    HeadInput in{.layer = layer,
                 .head = head,
                 .Q = q.middleCols(head * s.head_dim, s.head_dim).cast<double>(),
                 .K = k.middleCols(group * s.head_dim, s.head_dim).cast<double>(),
                 .V = v.middleCols(group * s.head_dim, s.head_dim).cast<double>(),
                 .scale = 1.0 / std::sqrt(static_cast<double>(s.head_dim))};
    if (s.family == ModelFamily::llama) {
      in.Q = rotated(s.rotary, in.Q, 0, false);
      in.K = rotated(s.rotary, in.K, 0, false);
    }
    out.middleCols(head * s.head_dim, s.head_dim) = rule(in);
  });
  return out;
}

double median_norm(const MatrixF& x) {
  std::vector<double> norms;
  for (Index i = 0; i < x.rows(); ++i) norms.push_back(x.row(i).cast<double>().norm());
  return median(norms);
}

void check_tokens(const Model& model, std::span<const Index> tokens) {
  if (tokens.empty() || static_cast<Index>(tokens.size()) > model.spec.context) {
    throw_argument("model " + model.name, "number of tokens", std::to_string(tokens.size()),
                   "1 to " + std::to_string(model.spec.context));
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= model.spec.vocab) {
      throw_argument("model " + model.name, "token " + std::to_string(i), std::to_string(tokens[i]),
                     "below " + std::to_string(model.spec.vocab));
    }
  }
}

}  // namespace

Matrix softmax_head(const HeadInput& head) {
  const Matrix a = head.scale * head.Q;
  const auto rows = [](const Matrix& x) { return Rows<double>(x.data(), x.rows(), x.cols()); };
  return tilt_causal(rows(a), rows(head.K), rows(head.V)).mean;
}

Pass run_model(const Model& model, std::span<const Index> tokens, const HeadRule& rule) {
  check_tokens(model, tokens);
  const ModelSpec& s = model.spec;
  Pass pass;
  MatrixF x = embed(model, tokens);
  for (Index l = 0; l < s.layers; ++l) {
    const ModelLayer& layer = model.layers[static_cast<std::size_t>(l)];
    pass.residual_norm.push_back(median_norm(x));
    pass.attention.push_back(attention_outputs(model, l, normed(s, layer.attention_norm, x), rule));
    x += apply(layer.o, pass.attention.back().cast<float>());
    x += feed_forward(s, layer, normed(s, layer.feed_norm, x));
  }
  pass.states = normed(s, model.final_norm, x);
  return pass;
}

MatrixF log_probabilities(const Model& model, const Pass& pass, Index first, Index rows) {
  MatrixF logits = times_transposed(pass.states.middleRows(first, rows), model.output_weights());
  for (Index i = 0; i < rows; ++i) {
    auto row = logits.row(i);
    const float top = row.maxCoeff();
    const double sum = (row.array() - top).exp().cast<double>().sum();
    row.array() -= top + static_cast<float>(std::log(sum));
  }
  return logits;
}

}  // namespace esscher
