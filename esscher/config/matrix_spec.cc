#include "esscher/config/matrix_spec.h"

#include <span>

#include "esscher/base/error.h"
#include "esscher/io/matrix.h"
#include "esscher/random/stream.h"
#include "esscher/task/power_matrix.h"

namespace esscher {
namespace {

constexpr Index kLargest = 1 << 16;  // of a side: 32 GiB of doubles is a slip, not a wish

std::string size_text(Index n) { return n == kAnySize ? "any" : std::to_string(n); }

struct Shape {
  Index rows;
  Index cols;
};

// The shape that the place or the spec gives, for kinds whose contents do not say it.
Shape known_shape(const Table& spec, Shape place) {
  if (spec.has("shape")) {
    const auto given = spec.integers("shape", Range::between(1, static_cast<double>(kLargest)));
    if (given.size() != 2) spec.fail("shape", "[rows, cols]");
    return {static_cast<Index>(given[0]), static_cast<Index>(given[1])};
  }
  if (place.rows == kAnySize) place.rows = place.cols;
  if (place.cols == kAnySize) place.cols = place.rows;
  if (place.rows == kAnySize)
    spec.fail_table("the size is not known here, add shape = [rows, cols]");
  return place;
}

Matrix random_matrix(const Table& spec, Shape shape, bool is_cov) {
  const auto seed = static_cast<std::uint64_t>(spec.integer_or("seed", 0, Range::at_least(0)));
  Matrix out(shape.rows, shape.cols);
  Stream(seed).fill_normal(0, std::span(out.data(), static_cast<std::size_t>(out.size())));
  if (is_cov) return out * out.transpose() / static_cast<double>(shape.cols);
  return out;
}

Matrix matrix_of_kind(const Table& spec, Shape place, bool is_cov) {
  const std::string kind =
      spec.choice("kind", {"identity", "diagonal", "kcm", "dense", "random", "file"});
  if (kind == "diagonal") return spec.vector("values").asDiagonal();
  if (kind == "dense") return spec.matrix("rows");
  if (kind == "file") return read_matrix(spec.file("path"));
  const Shape shape = known_shape(spec, place);
  if (kind == "identity") return Matrix::Identity(shape.rows, shape.cols);
  if (kind == "random") return random_matrix(spec, shape, is_cov);
  return power_matrix(shape.rows, shape.cols, spec.number("rho", Range::between(-1, 1)));
}

Matrix read_table(const Table& spec, Shape place, bool is_cov) {
  Matrix out = matrix_of_kind(spec, place, is_cov);
  out *= spec.number_or("scale", 1.0);
  if (!spec.has("operator_norm")) return out;
  const double wanted = spec.number("operator_norm", Range::at_least(0));
  const double largest = out.size() == 0 ? 0.0 : out.cwiseAbs().maxCoeff();
  if (!std::isfinite(largest)) return out;
  if (largest == 0) {
    if (wanted > 0) spec.fail("operator_norm", "0, because the matrix is zero");
    return out;
  }
  out /= largest;  // so that the squares below neither overflow nor vanish
  return out * (wanted / std::sqrt(max_eigenvalue(out * out.transpose())));
}

Matrix read_any(const Table& table, std::string_view key, Shape place, bool is_cov) {
  const ConfigValue& value = table.value(key);
  if (value.map()) return read_table(table.table(key), place, is_cov);
  if (value.array()) return table.matrix(key);
  const bool is_number = std::holds_alternative<double>(value.data) ||
                         std::holds_alternative<std::int64_t>(value.data);
  if (!is_number) table.fail(key, "a matrix: a number, rows [[..], ..] or { kind = .. }");
  if (place.rows == kAnySize) place.rows = place.cols;
  if (place.cols == kAnySize) place.cols = place.rows;
  if (place.rows == kAnySize) table.fail(key, "rows [[..], ..]: the size is not known here");
  return table.number(key) * Matrix::Identity(place.rows, place.cols);
}

Matrix read_sized(const Table& table, std::string_view key, Shape place, bool is_cov) {
  Matrix out = read_any(table, key, place, is_cov);
  const bool fits = (place.rows == kAnySize || out.rows() == place.rows) &&
                    (place.cols == kAnySize || out.cols() == place.cols);
  if (!fits || out.size() == 0) {
    table.fail_because(key, "shape is [" + std::to_string(out.rows()) + "," +
                                std::to_string(out.cols()) + "], expected [" +
                                size_text(place.rows) + "," + size_text(place.cols) + "]");
  }
  if (!out.allFinite()) table.fail_because(key, "entries overflow, expected finite numbers");
  return out;
}

}  // namespace

Matrix read_matrix_spec(const Table& table, std::string_view key, Index rows, Index cols) {
  return read_sized(table, key, {rows, cols}, false);
}

Matrix read_cov_spec(const Table& table, std::string_view key, Index dim) {
  Matrix cov = read_sized(table, key, {dim, dim}, true);
  if (cov.rows() != cov.cols()) {
    table.fail_because(key, "shape is [" + std::to_string(cov.rows()) + "," +
                                std::to_string(cov.cols()) + "], expected a square matrix");
  }
  try {
    (void)psd_factor("covariance", "matrix", cov);
  } catch (const ArgumentError& error) {
    table.fail_because(key, error.what());
  }
  return cov;
}

}  // namespace esscher
