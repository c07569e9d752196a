#include "esscher/store/lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "esscher/base/error.h"

namespace esscher {
namespace {

std::string content(int file) {
  std::array<char, 512> buffer{};
  const auto size = pread(file, buffer.data(), buffer.size(), 0);
  return size <= 0 ? std::string() : std::string(buffer.data(), static_cast<std::size_t>(size));
}

struct flock whole_file() {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  return range;
}

}  // namespace

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> buffer{};
  std::strftime(buffer.data(), buffer.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return buffer.data();
}

std::string host_name() {
  std::array<char, 256> buffer{};
  return gethostname(buffer.data(), buffer.size() - 1) == 0 ? buffer.data() : "unknown";
}

RunLock::RunLock(const std::filesystem::path& directory) {
  const auto path = directory / "run.lock";
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0)
    throw FileError(path.string() + ": cannot be opened for writing (" + std::strerror(errno) +
                    ")");
  struct flock range = whole_file();
  if (fcntl(file_, F_OFD_SETLK, &range) != 0) {
    const std::string holder = content(file_);
    close(std::exchange(file_, -1));
    throw RuntimeFailure(directory.string() + ": the run is held by " +
                         (holder.empty() ? "another process" : holder) +
                         "; wait for it or choose another directory");
  }
  const std::string me =
      "process " + std::to_string(getpid()) + " on " + host_name() + " since " + utc_now();
  // This may fail: on a full disk the lock still works, and only the name of the holder is missing.
  if (ftruncate(file_, 0) == 0 && pwrite(file_, me.data(), me.size(), 0) < 0) errno = 0;
}

RunLock::RunLock(RunLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

RunLock::~RunLock() {
  if (file_ >= 0) close(file_);
}

std::optional<std::string> lock_holder(const std::filesystem::path& directory) {
  const int file = open((directory / "run.lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::optional<std::string> holder;
  struct flock range = whole_file();
  range.l_type = F_RDLCK;  // asks without taking, so that a look never disturbs a writer
  if (fcntl(file, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK) holder = content(file);
  close(file);
  return holder;
}

}  // namespace esscher
