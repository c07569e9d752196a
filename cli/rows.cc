#include "cli/rows.h"

#include <fmt/format.h>

#include "esscher/base/error.h"
#include "esscher/prompt/direct.h"

namespace esscher::cli {
namespace {

constexpr Index kLargestJacobian = 1'000'000;

void add_derivatives(Json& row, const AnyMeasure& mu, const Attention& attention,
                     const VectorView& z) {
  const Index d = attention.dim();
  const Index dv = attention.output_dim();
  if (dv * d * std::max(d, dv) > kLargestJacobian) {
    throw_argument("--derivatives", "size of a Jacobian", std::to_string(dv * d * std::max(d, dv)),
                   "at most " + std::to_string(kLargestJacobian) + " numbers");
  }
  row["jacobian_z"] = json_matrix(attention.jacobian_z(mu, z));
  row["jacobian_U"] = json_matrix(attention.jacobian_U(mu, z));
  row["jacobian_V"] = json_matrix(attention.jacobian_V(mu, z));
}

// A prompt goes through the kernels, as it does from Python.
Vector softmax_output(const AnyMeasure& mu, const Attention& attention, const VectorView& z) {
  if (const auto* prompt = mu.as<Empirical>()) return direct_output(attention, *prompt, z);
  return attention(mu, z);
}

}  // namespace

Json query_row(const AnyMeasure& mu, const Attention& attention, const VectorView& z,
               const RowOptions& options) {
  const Vector a = attention.tilt(z);
  const Vector linear = attention.linear(mu, z);
  Json row;
  row["z"] = json_vector(z);
  row["output"] = json_vector(options.linear ? linear : softmax_output(mu, attention, z));
  row["output_linear"] = json_vector(linear);
  row["log_mgf"] = number(mu.log_mgf(a));
  row["tau2"] = number(a.dot(mu.tilted_cov_times(Vector::Zero(a.size()), a)));
  row["tilted_mean"] = json_vector(mu.tilted_mean(a));
  row["tilted_cov"] = json_matrix(mu.tilted_cov(a));
  if (const auto* prompt = mu.as<Empirical>()) {
    row["effective_sample_size"] = number(prompt->effective_sample_size(a));
  }
  if (options.derivatives) add_derivatives(row, mu, attention, z);
  return row;
}

Matrix query_points(const Table& root, Index dim, Index count, std::uint64_t seed) {
  const Query query = read_query(root, dim);
  if (!query.law) return query.points;
  return query.law->sample(Stream(seed), count).tokens();
}

std::string short_number(const Json& number) {
  return number.is_number() ? fmt::format("{:.6g}", number.get<double>()) : "-";
}

std::string short_text(const Json& numbers) {
  constexpr std::size_t kShown = 6;
  std::string out = "[";
  for (std::size_t i = 0; i < std::min(numbers.size(), kShown); ++i) {
    out += (i > 0 ? ", " : "") + short_number(numbers[i]);
  }
  return out + (numbers.size() > kShown ? ", ...]" : "]");
}

}  // namespace esscher::cli
