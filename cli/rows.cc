#include "cli/rows.h"

#include <algorithm>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/json/rows.h"
#include "esscher/prompt/direct.h"

namespace esscher::cli {
namespace {

constexpr Index kLargestJacobian = 1'000'000;

// The Jacobians are those of "output", so they follow the kind of the operator.
void add_derivatives(QueryRow& row, const AnyMeasure& mu, const Attention& attention,
                     const VectorView& z, bool linear) {
  const Index d = attention.dim();
  const Index dv = attention.output_dim();
  if (dv * d * std::max(d, dv) > kLargestJacobian) {
    throw_argument("--derivatives", "size of a Jacobian", std::to_string(dv * d * std::max(d, dv)),
                   "at most " + std::to_string(kLargestJacobian) + " numbers");
  }
  row.jacobian_z = linear ? attention.linear_jacobian_z(mu, z) : attention.jacobian_z(mu, z);
  row.jacobian_U = linear ? attention.linear_jacobian_U(mu, z) : attention.jacobian_U(mu, z);
  row.jacobian_V = linear ? attention.linear_jacobian_V(mu, z) : attention.jacobian_V(mu, z);
}

// A prompt goes through the kernels, as it does from Python.
Vector softmax_output(const AnyMeasure& mu, const Attention& attention, const VectorView& z) {
  if (const auto* prompt = mu.as<Empirical>()) return direct_output(attention, *prompt, z);
  return attention(mu, z);
}

}  // namespace

void add_row_options(const Command& verb, RowRequest& request) {
  verb.flag("--derivatives", request.derivatives, "add the Jacobians of the output in z, U and V");
  verb.option("--queries", request.queries, "queries to draw if [query] is a measure")
      .type_name("N")
      .between(std::int64_t{1}, std::int64_t{1000000});
}

QueryRow query_row(const AnyMeasure& mu, const Attention& attention, const VectorView& z,
                   const RowOptions& options) {
  const Vector a = attention.tilt(z);
  QueryRow row;
  row.z = z;
  row.output_linear = attention.linear(mu, z);
  row.output = options.linear ? row.output_linear : softmax_output(mu, attention, z);
  row.log_mgf = mu.log_mgf(a);
  row.tau2 = a.dot(mu.tilted_cov_times(Vector::Zero(a.size()), a));
  row.tilted_mean = mu.tilted_mean(a);
  row.tilted_cov = mu.tilted_cov(a);
  if (const auto* prompt = mu.as<Empirical>()) {
    row.effective_sample_size = prompt->effective_sample_size(a);
  }
  if (options.derivatives) add_derivatives(row, mu, attention, z, options.linear);
  return row;
}

Json query_json(const QueryRow& row) {
  Json out = row_json(row);
  if (!row.effective_sample_size) out.erase("effective_sample_size");
  if (!row.jacobian_z) {
    for (const char* key : {"jacobian_z", "jacobian_U", "jacobian_V"}) out.erase(key);
  }
  return out;
}

Matrix query_points(const Table& root, Index dim, Index count, std::uint64_t seed) {
  const Query query = read_query(root, dim);
  if (!query.law) return query.points;
  return query.law->sample(Stream(seed), count).tokens();
}

QueryRow AskedRows::row(const AnyMeasure& mu, Index i) const {
  return query_row(mu, attention, points.row(i).transpose(), options);
}

AskedRows asked_rows(const Table& root, Index dim, const RowRequest& request, std::uint64_t seed) {
  return {.attention = read_attention(root, dim),
          .options = {.linear = attention_is_linear(root), .derivatives = request.derivatives},
          .points = query_points(root, dim, request.queries, seed)};
}

std::string brief_vector(const VectorView& x) {
  constexpr Index kShown = 6;
  std::string out = "[";
  for (Index i = 0; i < std::min(x.size(), kShown); ++i) {
    out += (i > 0 ? ", " : "") + brief(x(i), 6);
  }
  return out + (x.size() > kShown ? ", ...]" : "]");
}

}  // namespace esscher::cli
