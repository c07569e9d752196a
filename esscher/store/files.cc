#include "esscher/store/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/store/lock.h"

namespace esscher {
namespace {

namespace fs = std::filesystem;

// A killed creation is younger than this only if its process may still be between two system calls.
constexpr auto kGrace = std::chrono::minutes(1);

[[noreturn]] void fail(const fs::path& path, const std::string& what) {
  throw FileError(path.string() + ": " + what + " (" + std::strerror(errno) + ")");
}

void sync_directory(const fs::path& directory) {
  const int file = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  fsync(file);
  close(file);
}

fs::path parent_of(const fs::path& directory) {
  const auto parent = directory.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

std::string prefix_of(const fs::path& target) {
  return std::string(".").append(target.filename().string()).append(".new-");
}

fs::path without_slash(const fs::path& directory) {
  return directory.has_filename() ? directory : directory.parent_path();
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

void remove_remains(const fs::path& directory) {
  const fs::path target = without_slash(directory);
  const std::string prefix = prefix_of(target);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent_of(target), ignored)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    if (lock_holder(entry.path())) continue;
    const bool locked_once = fs::exists(entry.path() / "run.lock", ignored);
    const auto age = fs::file_time_type::clock::now() - entry.last_write_time(ignored);
    if (locked_once || age > kGrace) fs::remove_all(entry.path(), ignored);
  }
}

bool create_directory_atomically(const fs::path& directory,
                                 const std::function<void(const fs::path&)>& fill) {
  const fs::path target = without_slash(directory);
  const fs::path parent = parent_of(target);
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) throw FileError(parent.string() + ": cannot be created (" + error.message() + ")");
  std::string name = (parent / (prefix_of(target) + "XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr) fail(target, "cannot be created");
  const fs::path temporary = name;
  try {
    fs::permissions(temporary, fs::perms::owner_all | fs::perms::group_read |
                                   fs::perms::group_exec | fs::perms::others_read |
                                   fs::perms::others_exec);
    fill(temporary);
    sync_directory(temporary);
    const bool made = rename(temporary.c_str(), target.c_str()) == 0;
    if (!made && errno != EEXIST && errno != ENOTEMPTY) fail(target, "cannot be created");
    if (!made) fs::remove_all(temporary, error);
    sync_directory(parent);
    return made;
  } catch (...) {
    fs::remove_all(temporary, error);
    throw;
  }
}

std::string line_difference(std::string_view a, std::string_view b) {
  const auto x = lines_of(a);
  const auto y = lines_of(b);
  // common[i][j]: longest common subsequence of x[i..] and y[j..]
  std::vector<std::vector<int>> common(x.size() + 1, std::vector<int>(y.size() + 1, 0));
  for (std::size_t i = x.size(); i-- > 0;) {
    for (std::size_t j = y.size(); j-- > 0;) {
      common[i][j] =
          x[i] == y[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::string out;
  for (std::size_t i = 0, j = 0; i < x.size() || j < y.size();) {
    if (i < x.size() && j < y.size() && x[i] == y[j]) {
      ++i, ++j;
    } else if (j == y.size() || (i < x.size() && common[i + 1][j] >= common[i][j + 1])) {
      out.append("  - ").append(x[i++]).append("\n");
    } else {
      out.append("  + ").append(y[j++]).append("\n");
    }
  }
  return out;
}

}  // namespace esscher
