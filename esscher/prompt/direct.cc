#include "esscher/prompt/direct.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "esscher/io/drop_pages.h"
#include "esscher/tilt/many.h"

namespace esscher {
namespace {

template <class T>
using RowMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr Index kChunkBytes = Index{16} << 20;

std::span<const double> as_span(const Vector& x) {
  return {x.data(), static_cast<std::size_t>(x.size())};
}

Rows<double> rows_of(const MatrixView& x) {
  return {x.data(), x.rows(), x.cols(), x.outerStride()};
}

// log(n p_l) [n]; empty when all weights are equal.
Vector log_weights(const Empirical& prompt) {
  const Vector& p = prompt.weights();
  if (p.minCoeff() == p.maxCoeff()) return {};
  return (p.array() * static_cast<double>(p.size())).log();
}

void check_prompt(const char* where, const Attention& attention, Index d) {
  check_dimension(where, "tokens.d", d, attention.dim());
}

template <class T>
void check_rows(const char* where, const Attention& attention, const Rows<T>& tokens) {
  check_prompt(where, attention, tokens.d);
  if (tokens.n < 1) throw_argument(where, "tokens", "empty", "at least one token");
}

// Called when a sum is not finite. Either a token is not finite, or the scores overflow.
template <class T>
void check_tokens(const char* where, const Rows<T>& tokens) {
  for (Index l = 0; l < tokens.n; ++l) {
    for (Index i = 0; i < tokens.d; ++i) {
      const auto x = static_cast<double>(tokens.data[l * tokens.stride + i]);
      if (!std::isfinite(x)) {
        throw_argument(where, "tokens[" + std::to_string(l) + "," + std::to_string(i) + "]",
                       to_text(x), "a finite number");
      }
    }
  }
  throw DomainError(std::string(where) + ": the scores are too large for this precision");
}

Vector functional(const char* where, const Attention& attention, const VectorView& g) {
  check_dimension(where, "g", g.size(), attention.output_dim());
  return attention.V().transpose() * g;
}

// U = scale K'Q.
void fill_key_query(const Attention& attention, AttentionGradients& gradients) {
  if (!attention.has_kq()) return;
  gradients.K = attention.scale() * attention.Q() * gradients.U.transpose();
  gradients.Q = attention.scale() * attention.K() * gradients.U;
}

DirectResult finish(const Attention& attention, const TiltState& state, const VectorView& z,
                    const VectorView& g) {
  const Vector m = state.mean(), c = state.product_mean();
  DirectResult result;
  result.output = attention.V() * m;
  result.gradients.z = attention.U().transpose() * c;
  result.gradients.U = c * z.transpose();
  result.gradients.V = g * m.transpose();
  fill_key_query(attention, result.gradients);
  return result;
}

void check_cotangents(const char* where, const Attention& attention, const MatrixView& queries,
                      const MatrixView& g) {
  check_dimension(where, "queries.d", queries.cols(), attention.dim());
  check_dimension(where, "g.d", g.cols(), attention.output_dim());
  check_dimension(where, "g.n", g.rows(), queries.rows());
}

// Gradients summed over the rows, from zbar and C_hat V'g of each.
AttentionGradients sum_gradients(const Attention& attention, const TiltRows& rows,
                                 const MatrixView& queries, const MatrixView& g) {
  AttentionGradients gradients;
  gradients.U = rows.product.transpose() * queries;
  gradients.V = g.transpose() * rows.mean;
  fill_key_query(attention, gradients);
  return gradients;
}

template <class T>
DirectRows vjps(const char* where, const Attention& attention, const Rows<T>& tokens,
                std::span<const T> log_weights, const MatrixView& queries, const MatrixView& g) {
  check_cotangents(where, attention, queries, g);
  const RowMatrix<T> a = (queries * attention.U().transpose()).template cast<T>();
  const RowMatrix<T> r = (g * attention.V()).template cast<T>();
  const TiltRows rows =
      tilt_many_product<T>(Rows<T>(a.data(), a.rows(), a.cols()),
                           Rows<T>(r.data(), r.rows(), r.cols()), tokens, log_weights);
  if (!rows.mean.allFinite() || !rows.product.allFinite()) check_tokens(where, tokens);
  return {rows.mean * attention.V().transpose(), rows.product * attention.U(),
          sum_gradients(attention, rows, queries, g)};
}

template <class T>
std::vector<T> to(const Vector& x) {
  return {x.data(), x.data() + x.size()};
}

template <class T, class Chunk>
TiltState stream(const NpyReader& tokens, const Vector& a, const Vector& r, const Chunk& chunk) {
  TiltStream<T> sums(to<T>(a), to<T>(r));
  const Index row_bytes = tokens.cols() * static_cast<Index>(sizeof(T));
  const Index step = std::max<Index>(1, kChunkBytes / (kTiltLeaf * row_bytes)) * kTiltLeaf;
  for (Index first = 0; first < tokens.rows(); first += step) {
    chunk(sums, first, std::min(step, tokens.rows() - first));
    drop_pages(tokens.file(), tokens.array().data);
  }
  return sums.total();
}

TiltState stream(const Attention& attention, const NpyReader& tokens, const VectorView& z,
                 const Vector& r) {
  check_prompt("direct", attention, tokens.cols());
  const Vector a = attention.tilt(z);
  const std::span<const float> floats = tokens.floats();
  TiltState state;
  if (floats.empty()) {
    state = stream<double>(tokens, a, r, [&](TiltStream<double>& sums, Index first, Index n) {
      const Matrix rows = tokens.read(first, n);
      sums.push(rows_of(rows));
    });
  } else {
    state = stream<float>(tokens, a, r, [&](TiltStream<float>& sums, Index first, Index n) {
      sums.push(Rows<float>(floats.data(), tokens.rows(), tokens.cols()).slice(first, n));
    });
  }
  if (!state.empty() && !(std::isfinite(state.norm) && state.sum.allFinite())) {
    throw FileError("direct: the token file holds a value that is NaN or infinite");
  }
  return state;
}

}  // namespace

Vector direct_output(const Attention& attention, const Empirical& prompt, const VectorView& z) {
  check_prompt("direct_output", attention, prompt.dim());
  const Vector a = attention.tilt(z), b = log_weights(prompt);
  const Rows<double> tokens = rows_of(prompt.tokens());
  return attention.V() * tilt<double>(as_span(a), tokens, tokens, as_span(b)).mean();
}

Matrix direct_outputs(const Attention& attention, const Empirical& prompt,
                      const MatrixView& queries) {
  check_prompt("direct_outputs", attention, prompt.dim());
  check_dimension("direct_outputs", "queries.d", queries.cols(), attention.dim());
  const Matrix a = queries * attention.U().transpose();
  const Vector b = log_weights(prompt);
  const Rows<double> tokens = rows_of(prompt.tokens());
  return tilt_many<double>(rows_of(a), tokens, tokens, as_span(b)).mean * attention.V().transpose();
}

DirectResult direct_vjp(const Attention& attention, const Empirical& prompt, const VectorView& z,
                        const VectorView& g) {
  check_prompt("direct_vjp", attention, prompt.dim());
  const Vector a = attention.tilt(z), b = log_weights(prompt);
  const Vector r = functional("direct_vjp", attention, g);
  const Rows<double> tokens = rows_of(prompt.tokens());
  return finish(attention, tilt_product<double>(as_span(a), as_span(r), tokens, tokens, as_span(b)),
                z, g);
}

template <class T>
Matrix direct_outputs(const Attention& attention, const Rows<T>& tokens,
                      const MatrixView& queries) {
  check_rows("direct_outputs", attention, tokens);
  check_dimension("direct_outputs", "queries.d", queries.cols(), attention.dim());
  Matrix means;
  if (queries.rows() == 1) {  // one pass at the speed of memory
    const std::vector<T> a = to<T>(attention.tilt(queries.row(0).transpose()));
    means = tilt<T>(a, tokens, tokens).mean().transpose();
  } else {
    const RowMatrix<T> a = (queries * attention.U().transpose()).template cast<T>();
    means = tilt_many<T>(Rows<T>(a.data(), a.rows(), a.cols()), tokens, tokens).mean;
  }
  if (!means.allFinite()) check_tokens("direct_outputs", tokens);
  return means * attention.V().transpose();
}

template <class T>
DirectResult direct_vjp(const Attention& attention, const Rows<T>& tokens, const VectorView& z,
                        const VectorView& g) {
  check_rows("direct_vjp", attention, tokens);
  const std::vector<T> a = to<T>(attention.tilt(z));
  const std::vector<T> r = to<T>(functional("direct_vjp", attention, g));
  const TiltState state = tilt_product<T>(a, r, tokens, tokens);
  if (!state.sum.allFinite() || !state.product.allFinite()) check_tokens("direct_vjp", tokens);
  return finish(attention, state, z, g);
}

DirectRows direct_vjps(const Attention& attention, const Empirical& prompt,
                       const MatrixView& queries, const MatrixView& g) {
  check_prompt("direct_vjps", attention, prompt.dim());
  const Vector b = log_weights(prompt);
  return vjps("direct_vjps", attention, rows_of(prompt.tokens()), as_span(b), queries, g);
}

template <class T>
DirectRows direct_vjps(const Attention& attention, const Rows<T>& tokens, const MatrixView& queries,
                       const MatrixView& g) {
  check_rows("direct_vjps", attention, tokens);
  return vjps<T>("direct_vjps", attention, tokens, {}, queries, g);
}

template DirectRows direct_vjps(const Attention&, const Rows<float>&, const MatrixView&,
                                const MatrixView&);
template DirectRows direct_vjps(const Attention&, const Rows<double>&, const MatrixView&,
                                const MatrixView&);
template Matrix direct_outputs(const Attention&, const Rows<float>&, const MatrixView&);
template Matrix direct_outputs(const Attention&, const Rows<double>&, const MatrixView&);
template DirectResult direct_vjp(const Attention&, const Rows<float>&, const VectorView&,
                                 const VectorView&);
template DirectResult direct_vjp(const Attention&, const Rows<double>&, const VectorView&,
                                 const VectorView&);

Matrix direct_prefixes(const Attention& attention, const Empirical& prompt, const VectorView& z,
                       std::span<const Index> lengths) {
  check_prompt("direct_prefixes", attention, prompt.dim());
  const Vector a = attention.tilt(z), b = log_weights(prompt);
  const Rows<double> tokens = rows_of(prompt.tokens());
  return tilt_prefixes<double>(as_span(a), tokens, tokens, lengths, as_span(b)) *
         attention.V().transpose();
}

Vector direct_output(const Attention& attention, const NpyReader& tokens, const VectorView& z) {
  return attention.V() * stream(attention, tokens, z, Vector()).mean();
}

DirectResult direct_vjp(const Attention& attention, const NpyReader& tokens, const VectorView& z,
                        const VectorView& g) {
  const Vector r = functional("direct_vjp", attention, g);
  return finish(attention, stream(attention, tokens, z, r), z, g);
}

DirectBatch direct_batch(const Attention& attention, const Rows<float>& tokens, Index length,
                         const MatrixView& queries, const MatrixView& g) {
  check_prompt("direct_batch", attention, tokens.d);
  check_cotangents("direct_batch", attention, queries, g);
  const RowMatrix<float> a = (queries * attention.U().transpose()).cast<float>();
  const RowMatrix<float> r = (g * attention.V()).cast<float>();
  const TiltRows rows =
      tilt_batch<float>(Rows<float>(a.data(), a.rows(), a.cols()),
                        Rows<float>(r.data(), r.rows(), r.cols()), tokens, length);
  return {rows.mean * attention.V().transpose(), sum_gradients(attention, rows, queries, g)};
}

}  // namespace esscher
