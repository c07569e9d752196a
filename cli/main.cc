// esscher VERB [options]. Exit 0 ok, 2 bad usage or bad input, 1 anything else.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "cli/completion.h"
#include "cli/execute.h"
#include "cli/process/process.h"
#include "cli/style.h"
#include "cli/verbs.h"
#include "esscher/base/error.h"
#include "esscher/base/version.h"
#include "esscher/simd/targets.h"

namespace esscher::cli {
namespace {

constexpr int kBadInput = 2;
constexpr int kFailure = 1;

int report(const char* message, int code) {
  const std::string name = styled(bad("esscher:"), shows_colour(stderr));
  std::fprintf(stderr, "%s %s\n", name.c_str(), message);
  return code;
}

int run(int argc, char** argv) {
  const Program program(
      "esscher",
      "Softmax attention as an operator on measures: what an infinite prompt does, and how far a\n"
      "finite one is from it.",
      std::string("esscher ") + kVersion + " (" + build_commit() + ")");
  const Command app = program.root();
  app.footer("'esscher help VERB' explains a verb and shows examples.");
  Globals globals;
  add_limit(app, globals);
  add_attend(app, globals);
  add_universal(app, globals);
  add_scaling(app, globals);
  add_heads(app, globals);
  add_model(app, globals);
  add_runs(app, globals);
  add_report(app, globals);
  add_export(app, globals);
  add_cite(app, globals);
  add_concentration(app, globals);
  add_length(app, globals);
  add_bench(app, globals);
  add_icl(app, globals);
  add_config(app, globals);
  add_presets(app, globals);
  add_explore(app, globals);
  add_paper(app, globals);
  add_targets(app, globals);
  add_completion(app, globals);
  add_manual(app, globals);
  if (argc > 1 && std::string_view(argv[1]) == kCompleteWord) {
    return print_candidates(app, {argv + 2, argv + argc});
  }
  return program.parse(argc, argv, kBadInput);
}

}  // namespace
}  // namespace esscher::cli

namespace {

int guarded(int argc, char** argv) {
  using namespace esscher;
  try {
    cli::prepare_process();
    const char* target = std::getenv("ESSCHER_TARGET");
    if (target != nullptr) simd::force_target(target);
    return cli::run(argc, argv);
  } catch (const cli::ShardEnd&) {
    return 0;
  } catch (const RuntimeFailure& error) {
    return cli::report(error.what(), cli::kFailure);
  } catch (const Error& error) {
    return cli::report(error.what(), cli::kBadInput);
  } catch (const std::bad_alloc&) {
    return cli::report("out of memory", cli::kFailure);
  } catch (const std::exception& error) {
    return cli::report(error.what(), cli::kFailure);
  }
}

}  // namespace

int main(int argc, char** argv) {
  // A closed pipe is an error of write(), not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  return esscher::cli::finish_process(guarded(argc, argv));
}
