#include "cli/dry_run.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>

#include "cli/process/progress.h"
#include "esscher/base/number_text.h"
#include "esscher/base/parallel.h"
#include "esscher/store/run.h"

namespace esscher::cli {
namespace {

rusage usage() {
  rusage out{};
  getrusage(RUSAGE_SELF, &out);
  return out;
}

double seconds_of(const timeval& t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

// The probe has touched what the work touches: tokens, tables of quadrature, buffers of a thread.
double memory_bytes() { return 1024.0 * static_cast<double>(usage().ru_maxrss); }

std::int64_t done_in(const std::string& directory) {
  std::error_code error;
  if (directory.empty() || !std::filesystem::exists(directory + "/run.sqlite", error)) return 0;
  return Run::open(directory).status().done;
}

// "8.3 MB", "131 MB"
std::string megabytes_text(double bytes) {
  return bytes < 1e7 ? brief(bytes / 1e6, 2) + " MB" : fmt::format("{:.0f} MB", bytes / 1e6);
}

Json part_json(const std::string& unit, const DryRunPart& part) {
  return {{"name", part.name},
          {unit, part.count},
          {"cpu_seconds", part.cpu_seconds ? number(*part.cpu_seconds) : Json()},
          {"memory_bytes", part.memory_bytes ? number(*part.memory_bytes) : Json()}};
}

// One line per part, under each other.
std::string parts_text(const DryRun& plan) {
  std::size_t width = 0;
  for (const DryRunPart& part : plan.parts) width = std::max(width, part.name.size());
  std::string out;
  for (const DryRunPart& part : plan.parts) {
    out +=
        fmt::format("  {:<{}}  {:>4} {}  {:>12}  {:>9}\n", part.name, width, part.count, plan.unit,
                    part.cpu_seconds ? brief(*part.cpu_seconds, 2) + " s of CPU" : "not measured",
                    part.memory_bytes ? megabytes_text(*part.memory_bytes) : "");
  }
  return out;
}

std::string time_text(const DryRun& plan, double left) {
  if (!plan.cpu_seconds) return "not known before: " + plan.basis;
  const double cpu = *plan.cpu_seconds * left;
  const int threads = thread_count();
  const auto about = [](double s) {
    return s < 1 ? "less than a second" : "about " + duration_text(s);
  };
  return fmt::format("{} on {} thread{} ({} of CPU time): {}", about(cpu / threads), threads,
                     threads == 1 ? "" : "s", about(cpu), plan.basis);
}

}  // namespace

double cpu_seconds(const std::function<void()>& work) {
  const rusage before = usage();
  work();
  const rusage after = usage();
  return seconds_of(after.ru_utime) - seconds_of(before.ru_utime) + seconds_of(after.ru_stime) -
         seconds_of(before.ru_stime);
}

void print_dry_run(const Globals& globals, const DryRun& plan) {
  const std::int64_t done = done_in(globals.out);
  const double left = plan.count > 0
                          ? static_cast<double>(plan.count - std::min(done, plan.count)) /
                                static_cast<double>(plan.count)
                          : 1;
  const double memory = plan.memory_bytes.value_or(memory_bytes());
  Json document{{"dry_run", true},       {"verb", plan.verb},     {"what", plan.what},
                {"engine", plan.engine}, {plan.unit, plan.count}, {"done", done}};
  document["cpu_seconds"] = plan.cpu_seconds ? number(*plan.cpu_seconds * left) : Json();
  document["seconds"] =
      plan.cpu_seconds ? number(*plan.cpu_seconds * left / thread_count()) : Json();
  document["threads"] = thread_count();
  document["basis"] = plan.basis;
  document["memory_bytes"] = memory;
  document["run"] = globals.out.empty() ? Json() : Json(globals.out);
  for (const DryRunPart& part : plan.parts) document["parts"].push_back(part_json(plan.unit, part));
  const std::string already = done > 0 ? fmt::format(", {} of them are done", done) : "";
  const std::string text = fmt::format(
      "would run {1}\n{2:<{0}}{3}\n{4:<{0}}{5}{6}\n{7:<{0}}{8}\n{9:<{0}}about "
      "{10}\n{11:<{0}}{12}\n",
      std::max<std::size_t>(8, plan.unit.size() + 1), plan.what, "engine", plan.engine, plan.unit,
      plan.count, already, "time", time_text(plan, left), "memory", megabytes_text(memory),
      "writes", globals.out.empty() ? "nothing (no --out)" : "the run in " + globals.out);
  Globals print = globals;
  print.out.clear();  // a dry run writes nothing
  print_result(print, "dry-run", document, text + parts_text(plan));
}

}  // namespace esscher::cli
