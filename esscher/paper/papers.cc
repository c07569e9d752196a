#include "esscher/paper/papers.h"

#include <algorithm>
#include <array>
#include <map>

#include "esscher/base/error.h"

namespace esscher::paper {
namespace {

// The entry with this id; `what` names the list in the error.
template <class Entry>
const Entry& find(std::span<const Entry> entries, std::string_view what, std::string_view id) {
  std::string ids;
  for (const Entry& entry : entries) {
    if (entry.id == id) return entry;
    ids += (ids.empty() ? "" : ", ") + std::string(entry.id);
  }
  throw_argument("paper", what, id, "one of " + ids);
}

}  // namespace

std::span<const Paper> papers() {
  static const std::array all{large_prompts(), mixtures(), temperature(), general()};
  return all;
}

const Paper& paper(std::string_view id) { return find(papers(), "which", id); }

const Statement& statement(const Paper& paper, std::string_view id) {
  return find(std::span<const Statement>(paper.statements), "section", id);
}

std::vector<Column> columns_of_paper(const Paper& paper) {
  std::vector<Column> all;
  std::map<std::string, std::size_t> uses;
  for (const Statement& s : paper.statements) {
    for (const Column& column : s.columns) {
      if (!column.optional) ++uses[column.name];
      const auto same = [&](const Column& known) { return known.name == column.name; };
      if (std::none_of(all.begin(), all.end(), same)) all.push_back(column);
    }
  }
  for (Column& column : all) column.optional = uses[column.name] < paper.statements.size();
  return all;
}

}  // namespace esscher::paper
