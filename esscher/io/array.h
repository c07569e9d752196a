// An array in a file: element type, shape, order and bytes. The parsers of .npy, .npz and
// .safetensors files return it and their writers take it. Elements are little-endian and need not
// be aligned.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "esscher/base/linalg.h"
#include "esscher/io/file.h"

namespace esscher {

enum class DType { f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean };

std::size_t size_of(DType dtype);
std::string_view name(DType dtype);  // as safetensors spells it: "F32", "BF16", "BOOL"

struct Array {
  DType dtype = DType::f64;
  std::vector<std::int64_t> shape;  // every entry >= 0; empty for a single number
  bool fortran = false;             // first index runs fastest
  Bytes data;                       // count() * size_of(dtype) bytes
  // Owns `data`, or null if it points into the parser's input.
  std::shared_ptr<const std::vector<std::byte>> owner;

  [[nodiscard]] std::size_t count() const { return data.size() / size_of(dtype); }
  [[nodiscard]] double at(std::size_t i) const;  // element i in file order, exact up to 2^53
  [[nodiscard]] std::string shape_text() const;  // "[3,4]"
};

// The number of bytes of an array of this type and shape; FileError if it is 2^63 or more.
std::size_t byte_count(std::string_view where, DType dtype, std::span<const std::int64_t> shape);

// These copy the values, in C order.
Array array_of(const MatrixView& values);                                        // [rows,cols] F64
Array vector_array(const VectorView& values);                                    // [n] F64
Array array_of(std::span<const float> values, std::vector<std::int64_t> shape);  // F32

// All rows, or the rows [first, first + n), as a Matrix. A 1-d array of n numbers becomes [n,1] and
// a single number [1,1]. Throws a FileError that starts with `where` if the array has more than two
// dimensions or no elements, or if an element is NaN or infinite.
Matrix to_matrix(std::string_view where, const Array& array);
Matrix to_matrix(std::string_view where, const Array& array, Index first, Index n);

// The shape of to_matrix(array).
struct MatrixShape {
  Index rows;
  Index cols;
};
MatrixShape matrix_shape(std::string_view where, const Array& array);

float half_to_float(std::uint16_t bits);

}  // namespace esscher
