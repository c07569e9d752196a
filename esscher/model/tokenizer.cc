#include "esscher/model/tokenizer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <queue>
#include <utility>

#include "esscher/base/error.h"

namespace esscher {
namespace {

// Bytes of the UTF-8 character that begins here; 1 if it is not one.
std::size_t character_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
  if (bytes > text.size()) return 1;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 1;
  }
  return bytes;
}

// Tokens in a row that are joined in place. A token that was joined to its left neighbour is gone.
struct Row {
  static constexpr std::size_t kNone = SIZE_MAX;
  struct Link {
    Index id = 0;
    std::size_t left = kNone, right = kNone;
    bool gone = false;
  };
  std::vector<Link> links;

  explicit Row(const std::vector<Index>& ids) : links(ids.size()) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      links[i] = {.id = ids[i],
                  .left = i == 0 ? kNone : i - 1,
                  .right = i + 1 == ids.size() ? kNone : i + 1};
    }
  }

  void join(std::size_t at, Index word) {
    Link& next = links[links[at].right];
    next.gone = true;
    links[at].id = word;
    links[at].right = next.right;
    if (next.right != kNone) links[next.right].left = at;
  }
};

// A pair of neighbours that is a word. It is out of date once one of the two has changed.
struct Pair {
  float score = 0;
  std::size_t at = 0;
  Index left = 0, right = 0, word = 0;

  friend bool operator<(const Pair& a, const Pair& b) {
    return a.score != b.score ? a.score < b.score : a.at > b.at;
  }
};

template <class T>
T read(Bytes bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

}  // namespace

Tokenizer::Tokenizer(std::vector<std::string> words, std::vector<float> scores)
    : words_(std::move(words)), scores_(std::move(scores)) {
  for (std::size_t i = 0; i < words_.size(); ++i) ids_[words_[i]] = static_cast<Index>(i);
}

std::vector<Index> Tokenizer::characters(std::string_view text) const {
  std::vector<Index> out;
  const auto add = [&](std::string_view character) {
    const auto found = ids_.find(std::string(character));
    if (found != ids_.end()) {
      out.push_back(found->second);
      return;
    }
    for (const char byte : character) {
      const Index id = kFirstByte + static_cast<unsigned char>(byte);
      if (id >= static_cast<Index>(words_.size())) {
        throw_argument("tokenizer", "text", "\"" + std::string(character) + "\"",
                       "a character of the vocabulary, whose " + std::to_string(words_.size()) +
                           " words have no id " + std::to_string(id));
      }
      out.push_back(id);
    }
  };
  add(" ");
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    add(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return out;
}

std::vector<Index> Tokenizer::encode(std::string_view text) const {
  Row row(characters(text));
  std::priority_queue<Pair> pairs;
  const auto offer = [&](std::size_t at) {
    if (at == Row::kNone || row.links[at].right == Row::kNone) return;
    const Index left = row.links[at].id;
    const Index right = row.links[row.links[at].right].id;
    const auto found = ids_.find(word(left) + word(right));
    if (found == ids_.end()) return;
    pairs.push({.score = scores_[static_cast<std::size_t>(found->second)],
                .at = at,
                .left = left,
                .right = right,
                .word = found->second});
  };
  for (std::size_t i = 0; i < row.links.size(); ++i) offer(i);
  while (!pairs.empty()) {
    const Pair best = pairs.top();
    pairs.pop();
    const Row::Link& link = row.links[best.at];
    if (link.gone || link.id != best.left || link.right == Row::kNone ||
        row.links[link.right].id != best.right) {
      continue;
    }
    row.join(best.at, best.word);
    offer(link.left);
    offer(best.at);
  }
  std::vector<Index> out{kBeginOfText};
  for (const Row::Link& link : row.links) {
    if (!link.gone) out.push_back(link.id);
  }
  return out;
}

Tokenizer parse_tokenizer(std::string_view where, Bytes bytes, Index vocab) {
  constexpr std::size_t kEntry = sizeof(float) + sizeof(std::int32_t);
  std::vector<std::string> words;
  std::vector<float> scores;
  std::size_t at = sizeof(std::int32_t);  // behind the length of the longest word
  for (Index id = 0; id < vocab; ++id) {
    const std::string entry = std::string(where) + ": word " + std::to_string(id);
    if (bytes.size() < at || bytes.size() - at < kEntry) {
      throw FileError(entry + " is missing, expected the " + std::to_string(vocab) +
                      " words of the model's vocabulary");
    }
    const auto score = read<float>(bytes, at);
    const auto size = read<std::int32_t>(bytes, at + sizeof(float));
    at += kEntry;
    if (size < 0 || bytes.size() - at < static_cast<std::size_t>(size) || std::isnan(score)) {
      throw FileError(entry + " has " + std::to_string(size) +
                      " bytes, expected a tokenizer.bin of llama2.c");
    }
    words.emplace_back(reinterpret_cast<const char*>(bytes.data()) + at,
                       static_cast<std::size_t>(size));
    scores.push_back(score);
    at += static_cast<std::size_t>(size);
  }
  if (at != bytes.size()) {
    throw FileError(std::string(where) + ": " + std::to_string(bytes.size() - at) +
                    " bytes behind word " + std::to_string(vocab - 1) + ", expected " +
                    std::to_string(vocab) + " words");
  }
  return {std::move(words), std::move(scores)};
}

std::vector<std::vector<Index>> encode_lines(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::vector<Index>> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) out.push_back(tokenizer.encode(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace esscher
