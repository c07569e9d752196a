// A table of text for a terminal: columns are as wide as their widest cell, numbers stand right. A
// column without any cell is left out, and each of the others can be explained once below.
#pragma once

#include <string>
#include <vector>

namespace esscher::cli {

struct TextColumn {
  std::string title;
  std::string meaning;             // one phrase
  std::vector<std::string> cells;  // "" and "-" hold nothing

  [[nodiscard]] bool is_empty() const;
};

class TextTable {
 public:
  explicit TextTable(std::vector<TextColumn> columns) : columns_(std::move(columns)) {}

  // Cells in the order of the columns.
  void add(const std::vector<std::string>& cells);
  // The titles and the rows, with two spaces in front of every column; `marks`[i] ends row i.
  [[nodiscard]] std::string text(const std::vector<std::string>& marks = {}) const;
  [[nodiscard]] const std::vector<TextColumn>& columns() const { return columns_; }

 private:
  std::vector<TextColumn> columns_;
};

// "  D(L)  the mean-square error" for each title that holds something in one of the tables, once.
std::string explained(const std::vector<TextTable>& tables);

}  // namespace esscher::cli
