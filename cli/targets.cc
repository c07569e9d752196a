// esscher targets: the CPU variants this machine can run, best first.
#include "esscher/simd/targets.h"

#include "cli/verbs.h"

namespace esscher::cli {

void add_targets(const Command& app, Globals& globals) {
  const Command verb = add_verb(app, globals, "targets", "List the CPU variants of the kernels",
                                "Best first. ESSCHER_TARGET=NAME forces another.\n"
                                "Examples:\n"
                                "  esscher targets\n"
                                "  ESSCHER_TARGET=SCALAR esscher targets --json",
                                kLookup);
  verb.run([&globals] {
    const std::vector<std::string> names = simd::supported_targets();
    const std::string in_use = simd::active_target();
    Json document{{"in_use", in_use}, {"targets", names}};
    std::string text;
    for (const std::string& name : names) {
      text += name + (name == in_use ? "  (in use)\n" : "\n");
    }
    print_result(globals, "targets", document, text);
  });
}

}  // namespace esscher::cli
