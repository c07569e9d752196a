// What a person sees while cells (or steps) are computed: a bar on a terminal, a plain line every
// few seconds otherwise, nothing when quiet. Always on stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "esscher/store/exec.h"

namespace esscher::cli {

class Progress {
 public:
  Progress(std::int64_t done, std::int64_t total, bool quiet, std::string_view unit = "cells");
  ~Progress();  // leaves the cursor on a fresh line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `note` follows the numbers.
  void update(std::int64_t done, std::string note = "");
  // A last line, even if the last one is young.
  void finish();
  // A line of its own, also when quiet.
  void say(const std::string& text);

 private:
  void print(bool last);

  using Clock = std::chrono::steady_clock;
  std::int64_t first_;
  std::int64_t done_;
  std::int64_t total_;
  std::string unit_;
  std::string note_;
  bool quiet_;
  bool terminal_;
  bool bar_shown_ = false;
  Clock::time_point start_;
  Clock::time_point last_;
};

// The same for the cells of a run. It begins with the first call of show(), and its last line is
// printed when it goes.
class CellBar {
 public:
  explicit CellBar(bool quiet) : quiet_(quiet) {}
  ~CellBar();
  CellBar(const CellBar&) = delete;
  CellBar& operator=(const CellBar&) = delete;

  void show(const CellProgress& progress);
  void say(const std::string& text);

 private:
  bool quiet_;
  bool failure_told_ = false;
  std::optional<Progress> progress_;
};

// "120/1000 cells  12.3/s  1m 11s left": `rate` per second, 0 if not known yet.
std::string progress_text(std::int64_t done, std::int64_t total, double rate,
                          std::string_view unit = "cells");
// "45s", "3m 20s", "2h 05m", "3d 04h"
std::string duration_text(double seconds);

}  // namespace esscher::cli
