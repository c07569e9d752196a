// What to cite for a run: the program by version and commit, and the papers the run rests on.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "esscher/store/run.h"

namespace esscher {

// A work that runs may rest on; the keys are those of docs/references.md.
struct Reference {
  std::string_view key;    // "BB26"
  std::string_view marks;  // words of a provenance that mean it, separated by |
  std::string_view bibtex;
};
std::span<const Reference> cited_references();

// BibTeX of this build of the program.
std::string bibtex_of_program();
// BibTeX of the programs that made the run and of the papers it rests on: the framework; the setting
// if it is a published one; the random numbers if any were drawn.
std::string bibtex_of(const Run& run);

}  // namespace esscher
