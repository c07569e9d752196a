// A study for tests of the store: cells whose rows depend on seed and index only.
//   study DIR CELLS MILLISECONDS [--threads N] [--seed S] [--shard I/N] [--fail INDEX] [--verbose]
// Writes DIR like a verb would and prints the CSV export on stdout.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "cli/process/process.h"
#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/random/stream.h"
#include "esscher/store/exec.h"
#include "esscher/store/export.h"

namespace {

struct StudyRow {
  std::int64_t L = 0;
  std::string metric;
  double value = 0;
  std::string engine = "exact";

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("L", row.L, "tokens", "length of the prompt");
    column("metric", row.metric, "", "a word that CSV has to quote");
    column("value", row.value, "", "a random number");
    column("engine", row.engine, "", "how it was computed");
  }
};

struct Arguments {
  std::string directory;
  std::size_t cells = 0;
  int milliseconds = 0;
  std::uint64_t seed = 1;
  std::size_t fail = static_cast<std::size_t>(-1);
  esscher::Shard shard;
  bool verbose = false;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  arguments.directory = argv[1];
  arguments.cells = std::stoul(argv[2]);
  arguments.milliseconds = std::stoi(argv[3]);
  for (int i = 4; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--verbose") {
      arguments.verbose = true;
      continue;
    }
    const std::string value = argv[++i];
    if (option == "--threads") esscher::set_thread_count(std::stoi(value));
    if (option == "--seed") arguments.seed = std::stoull(value);
    if (option == "--shard") arguments.shard = esscher::Shard::parse(value);
    if (option == "--fail") arguments.fail = std::stoul(value);
  }
  return arguments;
}

std::vector<StudyRow> compute(const Arguments& arguments, std::size_t index) {
  std::this_thread::sleep_for(std::chrono::milliseconds(arguments.milliseconds));
  if (index == arguments.fail) throw esscher::DomainError("study: index is cursed");
  const esscher::Stream stream(arguments.seed, index);
  std::vector<StudyRow> rows;
  for (std::uint64_t i = 0; i < 3; ++i) {
    rows.push_back({.L = static_cast<std::int64_t>(index) + 1,
                    .metric = i == 0 ? "output" : "grad, \"v\"",
                    .value = stream.normal(i)});
  }
  return rows;
}

int study(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  esscher::Cells<StudyRow> cells{.keys = {},
                                 .compute = [&](std::size_t i) { return compute(arguments, i); }};
  for (std::size_t i = 0; i < arguments.cells; ++i) {
    cells.keys.push_back("L=" + std::to_string(i + 1));
  }
  const esscher::RunInfo info{"study", "cells = " + std::to_string(arguments.cells) + "\n",
                              arguments.seed};
  auto run = esscher::Run::create_or_resume(arguments.directory, info, esscher::cli::ranks());
  const auto all = esscher::run_cells(
      &run, cells, esscher::cli::watched_options(arguments.shard, !arguments.verbose));
  if (!all.complete) return 0;
  run.set_document("summary", {{"rows", all.rows.size()}});
  std::fputs(esscher::export_csv(run).c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  esscher::cli::prepare_process();
  try {
    return esscher::cli::finish_process(study(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return esscher::cli::finish_process(1);
  }
}
