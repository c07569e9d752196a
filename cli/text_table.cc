#include "cli/text_table.h"

#include <algorithm>
#include <cstddef>
#include <set>

namespace esscher::cli {
namespace {

// Signs such as ± take two bytes and one place.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string padded(const std::string& text, std::size_t width) {
  return std::string(width - width_of(text), ' ') + text;
}

}  // namespace

bool TextColumn::is_empty() const {
  return std::all_of(cells.begin(), cells.end(),
                     [](const std::string& cell) { return cell.empty() || cell == "-"; });
}

void TextTable::add(const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i].cells.push_back(cells.at(i));
}

std::string TextTable::text(const std::vector<std::string>& marks) const {
  const std::size_t rows = columns_.front().cells.size();
  std::vector<std::string> lines(rows + 1);
  for (const TextColumn& column : columns_) {
    if (column.is_empty()) continue;
    std::size_t width = width_of(column.title);
    for (const std::string& cell : column.cells) width = std::max(width, width_of(cell));
    lines[0] += "  " + padded(column.title, width);
    for (std::size_t i = 0; i < rows; ++i) lines[i + 1] += "  " + padded(column.cells[i], width);
  }
  std::string out = lines[0] + "\n";
  for (std::size_t i = 0; i < rows; ++i) {
    out += lines[i + 1] + (i < marks.size() ? marks[i] : "") + "\n";
  }
  return out;
}

std::string explained(const std::vector<TextTable>& tables) {
  std::vector<const TextColumn*> shown;
  std::set<std::string> seen;
  std::size_t width = 0;
  for (const TextTable& table : tables) {
    for (const TextColumn& column : table.columns()) {
      if (column.is_empty() || column.meaning.empty() || !seen.insert(column.title).second)
        continue;
      shown.push_back(&column);
      width = std::max(width, width_of(column.title));
    }
  }
  std::string out;
  for (const TextColumn* column : shown) {
    out += "  " + column->title + std::string(width - width_of(column->title) + 2, ' ') +
           column->meaning + "\n";
  }
  return out;
}

}  // namespace esscher::cli
