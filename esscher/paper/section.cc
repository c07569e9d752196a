#include "esscher/paper/section.h"

#include <array>

#include "esscher/base/error.h"
#include "esscher/paper/statements.h"

namespace esscher::paper {

std::string_view name(Size size) {
  switch (size) {
    case Size::tiny: return "tiny";
    case Size::quick: return "quick";
    case Size::full: return "full";
  }
  return "?";
}

Size parse_size(const std::string& text) {
  for (const Size size : {Size::tiny, Size::quick, Size::full}) {
    if (text == name(size)) return size;
  }
  throw_argument("paper", "size", text, "tiny, quick or full");
}

std::span<const Section> sections() {
  static const std::array all{lemma_2_1(),   almost_sure(), prop_3_1(), prop_3_4(),  stability(),
                              theorem_4_3(), theorem_5_1(), transfer(), experiment()};
  return all;
}

const Section& section(std::string_view id) {
  std::string ids;
  for (const Section& s : sections()) {
    if (s.id == id) return s;
    ids += (ids.empty() ? "" : ", ") + std::string(s.id);
  }
  throw_argument("paper", "section", id, "one of " + ids);
}

}  // namespace esscher::paper
