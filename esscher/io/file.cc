#include "esscher/io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "esscher/base/error.h"

namespace esscher {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view what, int error) {
  throw FileError(path.string() + ": " + std::string(what) + ": " + std::strerror(error));
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

void write_all(int fd, Bytes bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "cannot write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // With O_NONBLOCK opening a FIFO fails below as "not a regular file" instead of waiting.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) fail(path, "cannot open", errno);
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) fail(path, "cannot read", errno);
  if (!S_ISREG(status.st_mode)) throw FileError(path.string() + ": expected a regular file");
  if (status.st_size == 0) return;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) fail(path, "cannot map", errno);
  bytes_ = {static_cast<const std::byte*>(data), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

std::string read_text(const std::filesystem::path& path) {
  const MappedFile file(path);
  return std::string(as_text(file.bytes()));
}

void write_file(const std::filesystem::path& path, Bytes bytes) {
  std::string temporary = path.string() + ".XXXXXX";
  const Descriptor file{::mkstemp(temporary.data())};
  if (file.fd < 0) fail(path, "cannot create", errno);
  try {
    write_all(file.fd, bytes, path);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(file.fd, 0666 & ~mask) != 0) fail(path, "cannot write", errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail(path, "cannot replace", errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  write_file(path, as_bytes(text));
}

}  // namespace esscher
