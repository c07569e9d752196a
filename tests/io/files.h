// Bytes and messages for the tests of parsers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/io/file.h"
#include "tests/testing.h"

namespace esscher::testing {

// What the files of tests/data/io hold.
inline const Matrix kA = (Matrix(2, 3) << 1.5, -2.25, 3, 4, 5e-3, -6).finished();

inline std::filesystem::path data_file(const std::string& name) {
  return std::filesystem::path(source_dir()) / "tests/data/io" / name;
}

// The message of the FileError that `call` throws, or "no error".
template <class Call>
std::string file_error(const Call& call) {
  try {
    call();
  } catch (const FileError& error) {
    return error.what();
  }
  return "no error";
}

inline std::string little_endian(std::uint64_t value, int size) {
  std::string out;
  for (int i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i) & 255);
  return out;
}

// A folder that is removed at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "esscher.XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace esscher::testing
