// Whole files as bytes. Reading maps the file, so a parser may read a file larger than memory.
// Writing replaces the target in one step, so a reader never sees half a file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace esscher {

using Bytes = std::span<const std::byte>;

// A regular file, mapped read-only. Throws FileError if it cannot be opened or is not a regular
// file. Nobody may shorten the file while it is mapped.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] Bytes bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

// The file as text, byte for byte.
std::string read_text(const std::filesystem::path& path);

// Writes a file next to `path` and renames it to `path`. If this throws a FileError, an existing
// file is left as it was.
void write_file(const std::filesystem::path& path, Bytes bytes);
void write_text(const std::filesystem::path& path, std::string_view text);

inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace esscher
