// .safetensors files:  header length (8 bytes)  JSON header  data
//
//   header = {"name": {"dtype": "F32", "shape": [3,4], "data_offsets": [0,48]}, ...,
//             "__metadata__": {"key": "text"}}
//
// The tensors must cover the data exactly. An offset out of range, an overlap, a hole, a duplicate
// name or a size that differs from the shape is a FileError. The parser allocates nothing larger
// than the header.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "esscher/io/array.h"
#include "esscher/io/file.h"

namespace esscher {

using Metadata = std::map<std::string, std::string>;

struct Safetensors {
  std::map<std::string, Array> tensors;  // arrays point into the parsed bytes
  Metadata metadata;
};

Safetensors parse_safetensors(std::string_view where, Bytes bytes);

// The bytes of a file. Throws ArgumentError for Fortran order, which the format does not have.
std::vector<std::byte> encode_safetensors(const std::map<std::string, Array>& tensors,
                                          const Metadata& metadata = {});

// A file kept open; its arrays live as long as it does.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  [[nodiscard]] const Safetensors& content() const { return content_; }
  [[nodiscard]] bool has(const std::string& tensor) const;
  // Throws a FileError that names the file and the tensors it has if none has this name.
  [[nodiscard]] const Array& array(const std::string& tensor) const;
  [[nodiscard]] Matrix matrix(const std::string& tensor) const;

 private:
  std::string name_;
  MappedFile file_;
  Safetensors content_;
};

}  // namespace esscher
