#include "esscher/io/array.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "esscher/base/error.h"

namespace esscher {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

double load_as_double(DType dtype, const std::byte* from) {
  switch (dtype) {
    case DType::f16: return half_to_float(load<std::uint16_t>(from));
    case DType::bf16: {
      const auto bits = static_cast<std::uint32_t>(load<std::uint16_t>(from)) << 16;
      return std::bit_cast<float>(bits);
    }
    case DType::f32: return load<float>(from);
    case DType::f64: return load<double>(from);
    case DType::i8: return load<std::int8_t>(from);
    case DType::i16: return load<std::int16_t>(from);
    case DType::i32: return load<std::int32_t>(from);
    case DType::i64: return static_cast<double>(load<std::int64_t>(from));
    case DType::u8: return load<std::uint8_t>(from);
    case DType::u16: return load<std::uint16_t>(from);
    case DType::u32: return load<std::uint32_t>(from);
    case DType::u64: return static_cast<double>(load<std::uint64_t>(from));
    case DType::boolean: return load<std::uint8_t>(from) != 0 ? 1 : 0;
  }
  return 0;
}

Array owned(DType dtype, std::vector<std::int64_t> shape, const void* data, std::size_t bytes) {
  auto storage = std::make_shared<std::vector<std::byte>>(bytes);
  if (bytes > 0) std::memcpy(storage->data(), data, bytes);
  Array out;
  out.dtype = dtype;
  out.shape = std::move(shape);
  out.data = *storage;
  out.owner = std::move(storage);
  return out;
}

}  // namespace

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::i8:
    case DType::u8:
    case DType::boolean: return 1;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16: return 2;
    case DType::f32:
    case DType::i32:
    case DType::u32: return 4;
    case DType::f64:
    case DType::i64:
    case DType::u64: return 8;
  }
  return 1;
}

std::string_view name(DType dtype) {
  constexpr std::string_view names[] = {"F16", "BF16", "F32", "F64", "I8",  "I16", "I32",
                                        "I64", "U8",   "U16", "U32", "U64", "BOOL"};
  return names[static_cast<std::size_t>(dtype)];
}

double Array::at(std::size_t i) const {
  return load_as_double(dtype, data.data() + i * size_of(dtype));
}

std::string Array::shape_text() const {
  std::string out = "[";
  for (const std::int64_t n : shape) {
    if (out.size() > 1) out += ",";
    out += std::to_string(n);
  }
  return out + "]";
}

std::size_t byte_count(std::string_view where, DType dtype, std::span<const std::int64_t> shape) {
  constexpr auto kLimit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t bytes = size_of(dtype);
  for (const std::int64_t n : shape) {
    const auto factor = static_cast<std::uint64_t>(n);
    if (n < 0 || (factor != 0 && bytes > kLimit / factor)) {
      throw FileError(std::string(where) + ": dimension " + std::to_string(n) +
                      " makes an array of more than 2^63 bytes");
    }
    bytes *= factor;
  }
  return bytes;
}

Array array_of(const MatrixView& values) {
  const Matrix copy = values;
  return owned(DType::f64, {copy.rows(), copy.cols()}, copy.data(),
               static_cast<std::size_t>(copy.size()) * sizeof(double));
}

Array vector_array(const VectorView& values) {
  return owned(DType::f64, {values.size()}, values.data(),
               static_cast<std::size_t>(values.size()) * sizeof(double));
}

Array array_of(std::span<const float> values, std::vector<std::int64_t> shape) {
  if (byte_count("array_of", DType::f32, shape) != values.size_bytes()) {
    throw_argument("array_of", "shape", std::to_string(values.size()) + " values",
                   "as many values as the shape has");
  }
  return owned(DType::f32, std::move(shape), values.data(), values.size_bytes());
}

MatrixShape matrix_shape(std::string_view where, const Array& array) {
  if (array.shape.size() > 2) {
    throw FileError(std::string(where) + ": shape is " + array.shape_text() +
                    ", expected at most two dimensions");
  }
  if (array.count() == 0) {
    throw FileError(std::string(where) + ": shape is " + array.shape_text() +
                    ", expected at least one element");
  }
  const auto extent = [&](std::size_t i) { return i < array.shape.size() ? array.shape[i] : 1; };
  return {extent(0), extent(1)};
}

Matrix to_matrix(std::string_view where, const Array& array) {
  return to_matrix(where, array, 0, matrix_shape(where, array).rows);
}

Matrix to_matrix(std::string_view where, const Array& array, Index first, Index n) {
  const auto [rows, cols] = matrix_shape(where, array);
  if (first < 0 || n < 0 || first > rows || n > rows - first) {
    throw_argument(where, "rows", std::to_string(first) + " to " + std::to_string(first + n),
                   "rows of an array of " + std::to_string(rows));
  }
  Matrix out(n, cols);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < cols; ++j) {
      const Index at = array.fortran ? (first + i) + j * rows : (first + i) * cols + j;
      const double x = array.at(static_cast<std::size_t>(at));
      if (!std::isfinite(x)) {
        throw FileError(std::string(where) + ": row " + std::to_string(first + i) + ", column " +
                        std::to_string(j) + " (from 0) is " + to_text(x) +
                        ", expected a finite number");
      }
      out(i, j) = x;
    }
  }
  return out;
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 31U;
  const std::uint32_t fraction = bits & 1023U;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | fraction << 13);
  if (exponent == 0) {
    const float small = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -small : small;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

}  // namespace esscher
