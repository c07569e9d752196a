// esscher cite: BibTeX of the program, and of what a run rests on.
#include "esscher/report/cite.h"

#include "cli/verbs.h"

namespace esscher::cli {

void add_cite(const Command& app, Globals&) {
  const Command verb = app.add("cite", "BibTeX for the program and for what a run rests on");
  verb.footer(
      "With a run: the versions and commits that made it, the paper of the framework, the paper of "
      "a\n"
      "published setting, and the random numbers if any were drawn.\n"
      "Examples:\n"
      "  esscher cite\n"
      "  esscher cite results/rate > esscher.bib");
  auto run = std::make_shared<std::string>();
  verb.option("run", *run, "run directory").type_name("RUN");
  verb.run(
      [run] { write_stdout(run->empty() ? bibtex_of_program() : bibtex_of(Run::open(*run))); });
}

}  // namespace esscher::cli
