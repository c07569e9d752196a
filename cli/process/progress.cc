#include "cli/process/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <utility>

namespace esscher::cli {
namespace {

constexpr std::chrono::milliseconds kTerminalPeriod{100};
constexpr std::chrono::milliseconds kPlainPeriod{5000};
constexpr int kBarWidth = 28;

std::string bar(std::int64_t done, std::int64_t total) {
  const auto full = total == 0 ? kBarWidth : static_cast<int>(kBarWidth * done / total);
  return fmt::format("[{:=<{}}{: <{}}]", "", full, "", kBarWidth - full);
}

}  // namespace

std::string duration_text(double seconds) {
  const auto s = std::llround(seconds);
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m {:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h {:02}m", s / 3600, s / 60 % 60);
  return fmt::format("{}d {:02}h", s / 86400, s / 3600 % 24);
}

std::string progress_text(std::int64_t done, std::int64_t total, double rate,
                          std::string_view unit) {
  std::string text = fmt::format("{}/{} {}", done, total, unit);
  if (rate <= 0) return text;
  text += rate >= 100 ? fmt::format("  {:.0f}/s", rate) : fmt::format("  {:.3g}/s", rate);
  if (done < total)
    text += "  " + duration_text(static_cast<double>(total - done) / rate) + " left";
  return text;
}

Progress::Progress(std::int64_t done, std::int64_t total, bool quiet, std::string_view unit)
    : first_(done),
      done_(done),
      total_(total),
      unit_(unit),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(Clock::now()),
      last_(start_) {
  if (done > 0 && done < total) {
    if (!quiet_) say(fmt::format("resuming: {} of {} {} are done", done, total, unit_));
  }
}

Progress::~Progress() {
  if (bar_shown_) std::fputc('\n', stderr);
}

void Progress::update(std::int64_t done, std::string note) {
  done_ = done;
  note_ = std::move(note);
  if (quiet_ || Clock::now() - last_ < (terminal_ ? kTerminalPeriod : kPlainPeriod)) return;
  print(false);
}

void Progress::finish() {
  if (!quiet_ && done_ > first_) print(true);
}

void Progress::say(const std::string& text) {
  if (bar_shown_) std::fputc('\n', stderr);
  bar_shown_ = false;
  std::fprintf(stderr, "%s\n", text.c_str());
}

void Progress::print(bool last) {
  last_ = Clock::now();
  const double seconds = std::chrono::duration<double>(last_ - start_).count();
  const double rate = seconds > 0 ? static_cast<double>(done_ - first_) / seconds : 0;
  std::string text = progress_text(done_, total_, rate, unit_);
  if (last) text += "  in " + duration_text(seconds);
  if (!note_.empty()) text += "  " + note_;
  if (terminal_) {
    std::fprintf(stderr, "\r\x1b[K%s %s", bar(done_, total_).c_str(), text.c_str());
    bar_shown_ = true;
  } else {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
  std::fflush(stderr);
}

CellBar::~CellBar() {
  if (progress_) progress_->finish();
}

void CellBar::show(const CellProgress& progress) {
  if (!progress_) progress_.emplace(progress.resumed, progress.total, quiet_);
  if (!progress.failed.empty() && !failure_told_) {
    progress_->say("cell " + progress.failed + " failed");
    failure_told_ = true;
  }
  progress_->update(progress.done);
}

void CellBar::say(const std::string& text) {
  if (!progress_) progress_.emplace(0, 0, quiet_);
  progress_->say(text);
}

}  // namespace esscher::cli
