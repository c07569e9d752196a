// The lock of a run decides which process may write it. It is an open-file-description lock on
// run.lock. The kernel drops it when the process dies, however it dies, so a lock is never stale.
// Other processes can ask about it without taking it, and the file tells who holds it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace esscher {

class RunLock {
 public:
  // Throws RuntimeFailure naming process, host and start time of the holder if there is one, and
  // FileError if run.lock cannot be written.
  explicit RunLock(const std::filesystem::path& directory);
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&& other) noexcept;
  ~RunLock();

 private:
  int file_ = -1;
};

// "process 4211 on node7 since 2026-01-31T08:00:00Z", or nothing if no one holds the run.
std::optional<std::string> lock_holder(const std::filesystem::path& directory);

// Now as "2026-01-31T08:00:00Z", and the name of this machine.
std::string utc_now();
std::string host_name();

}  // namespace esscher
