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

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/random/stream.h"
#include "esscher/store/exec.h"
#include "esscher/store/export.h"
#include "esscher/store/ranks.h"

namespace {

struct Arguments {
  std::string directory;
  std::size_t cells = 0;
  int milliseconds = 0;
  std::uint64_t seed = 1;
  std::size_t fail = static_cast<std::size_t>(-1);
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
    if (option == "--shard") esscher::set_shard(value);
    if (option == "--fail") arguments.fail = std::stoul(value);
  }
  return arguments;
}

std::vector<esscher::Row> compute(const Arguments& arguments, std::size_t index) {
  std::this_thread::sleep_for(std::chrono::milliseconds(arguments.milliseconds));
  if (index == arguments.fail) throw esscher::DomainError("study: index is cursed");
  const esscher::Stream stream(arguments.seed, index);
  std::vector<esscher::Row> rows;
  for (std::uint64_t i = 0; i < 3; ++i) {
    rows.push_back({{"L", index + 1},
                    {"metric", i == 0 ? "output" : "grad, \"v\""},
                    {"value", stream.normal(i)},
                    {"engine", "exact"}});
  }
  return rows;
}

int study(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < arguments.cells; ++i) keys.push_back("L=" + std::to_string(i + 1));
  const esscher::RunInfo info{"study", "cells = " + std::to_string(arguments.cells) + "\n",
                              arguments.seed};
  auto run = esscher::Run::create_or_resume(arguments.directory, info);
  esscher::run_cells(run, keys, [&](std::size_t i) { return compute(arguments, i); },
                     {.quiet = !arguments.verbose});
  run.set_document("summary", {{"rows", run.rows().size()}});
  std::fputs(esscher::export_csv(run).c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  esscher::prepare_ranks();
  try {
    return esscher::finish_ranks(study(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return esscher::finish_ranks(1);
  }
}
