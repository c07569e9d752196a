// A directory that goes away with the test, and programs run from it.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace esscher::testing {

class Temporary {
 public:
  Temporary() {
    std::string name = (std::filesystem::temp_directory_path() / "esscher-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Temporary() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

struct Outcome {
  int status = 0;  // exit code, or 128 + signal
  std::string out;
  std::string err;
};

// A program started by name, with stdout and stderr in files.
class Process {
 public:
  explicit Process(std::vector<std::string> arguments) {
    const std::string out = (directory_ / "out").string();
    const std::string err = (directory_ / "err").string();
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);
      if (freopen(out.c_str(), "w", stdout) == nullptr) _exit(126);
      if (freopen(err.c_str(), "w", stderr) == nullptr) _exit(126);
      std::vector<char*> argv;
      for (auto& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      execvp(argv[0], argv.data());
      _exit(127);
    }
  }
  void send(int signal) const { kill(pid_, signal); }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::string err() const { return bytes_of(directory_ / "err"); }

  Outcome wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            bytes_of(directory_ / "out"), bytes_of(directory_ / "err")};
  }

 private:
  Temporary directory_;
  pid_t pid_ = 0;
};

inline Outcome run_program(std::vector<std::string> arguments) {
  return Process(std::move(arguments)).wait();
}

}  // namespace esscher::testing
