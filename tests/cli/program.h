// The program run from outside, in a folder of the test's own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "esscher/io/file.h"
#include "esscher/json/json.h"
#include "tests/testing.h"

namespace esscher {

inline std::string esscher_program() { return testing::binary_dir() + "/cli/esscher"; }

struct Outcome {
  int code;
  std::string out;
  std::string err;
  [[nodiscard]] Json json() const { return parse_json("stdout", out); }
};

class Program : public ::testing::Test {
 protected:
  Program() {
    std::string name = (std::filesystem::temp_directory_path() / "esscher.XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Program() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return folder_ / name; }

  std::string config(const std::string& text) {
    write_text(file("exp.toml"), text);
    return "--config " + file("exp.toml").string() + " ";
  }

  Outcome run(const std::string& arguments, const std::string& redirect = "") {
    return run_command(esscher_program() + " " + arguments, redirect);
  }

  Outcome run_command(const std::string& program, const std::string& redirect = "") {
    const std::string command = program + " 2>" + file("stderr").string() + redirect;
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string out;
    std::array<char, 4096> buffer{};
    while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
      out.append(buffer.data(), n);
    }
    const int status = ::pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out, read_text(file("stderr"))};
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace esscher
