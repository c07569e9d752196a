// NumPy .npy files, format versions 1, 2 and 3.
//
//   "\x93NUMPY" major minor  header length (2 or 4 bytes)  header  data
//   header = {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
//
// A FileError refuses big-endian, pickled (object) and structured arrays, a header with other keys,
// and a data size that differs from what the shape says. The parser never allocates more than its
// input justifies.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "esscher/io/array.h"
#include "esscher/io/file.h"

namespace esscher {

// The array of a whole .npy file. It points into `bytes`. `where` starts every message.
Array parse_npy(std::string_view where, Bytes bytes);

// The bytes of a .npy file. Throws CapabilityError for BF16, for which .npy has no name.
std::vector<std::byte> encode_npy(const Array& array);
void write_npy(const std::filesystem::path& path, const MatrixView& values);

// A .npy file read piece by piece, for files larger than memory.
class NpyReader {
 public:
  explicit NpyReader(const std::filesystem::path& path);

  [[nodiscard]] Index rows() const { return shape_.rows; }
  [[nodiscard]] Index cols() const { return shape_.cols; }
  [[nodiscard]] const Array& array() const { return array_; }
  [[nodiscard]] const MappedFile& file() const { return file_; }  // for drop_pages()

  // Rows [first, first + n) as doubles. Throws FileError at the first element that is not finite.
  [[nodiscard]] Matrix read(Index first, Index n) const;

  // All rows without a copy, for float32 kernels: rows() * cols() values in row order. The span is
  // empty if the file is not aligned F32 in C order. Values are not checked for NaN.
  [[nodiscard]] std::span<const float> floats() const;

 private:
  std::string name_;
  MappedFile file_;
  Array array_;
  MatrixShape shape_;
};

}  // namespace esscher
