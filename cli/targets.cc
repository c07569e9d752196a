// esscher targets: the CPU variants this machine can run, the one in use first.
#include "esscher/simd/targets.h"

#include "cli/verbs.h"

namespace esscher::cli {

void add_targets(CLI::App& app, Globals& globals) {
  CLI::App* verb = add_verb(app, globals, "targets", "List the CPU variants of the kernels",
                            "The first is the one in use. ESSCHER_TARGET=NAME forces another.\n"
                            "Examples:\n"
                            "  esscher targets\n"
                            "  ESSCHER_TARGET=SSE4 esscher targets --json");
  verb->callback([&globals] {
    const std::vector<std::string> names = simd_targets();
    Json document{{"in_use", names.front()}, {"targets", names}};
    std::string text;
    for (const std::string& name : names) {
      text += name + (name == names.front() ? "  (in use)\n" : "\n");
    }
    print_result(globals, "targets", document, text);
  });
}

}  // namespace esscher::cli
