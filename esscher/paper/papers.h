// What `esscher paper --which ID` can check: each paper is a list of statements with a title and a
// lead for its page. A new paper is one function that returns a Paper, declared here and listed in
// papers.cc; the program, the run, the page, the help and the tests take it from the list.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "esscher/paper/section.h"

namespace esscher::paper {

struct Paper {
  std::string_view id;     // the word of --which; ids of statements are unique over all papers
  std::string_view about;  // one line for the help
  std::string title;       // of the page
  std::string lead;
  std::vector<Statement> statements;  // in the order of the page
};

Paper large_prompts();  // Boursier and Boyer, statement by statement (statements.h)
Paper temperature();    // score scales of long prompts (temperature.h)
Paper general();        // Theorem 4.3 on other tasks (general.h)
Paper mixtures();       // Gabet, Boursier and Boyer, and finite prompts (mixture_statements.h)

// The first is what `esscher paper` checks if nothing is chosen.
std::span<const Paper> papers();
// Both throw ArgumentError naming the ids there are.
const Paper& paper(std::string_view id);
const Statement& statement(const Paper& paper, std::string_view id);

// The union of the columns of all statements, which is what a run of the paper holds. A column that
// some rows do not have is optional.
std::vector<Column> columns_of_paper(const Paper& paper);

}  // namespace esscher::paper
