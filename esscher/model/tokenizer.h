// Text to token ids with the vocabulary of a llama2.c checkpoint: a file tokenizer.bin of
//
//   int32 longest word,   then per id: float32 score, int32 bytes, the word
//
// A text gets a space in front and is cut into characters. Then, as long as two neighbours join to a
// word of the vocabulary, the pair whose word has the best score is joined, the leftmost of equals. A
// character without a word becomes its bytes: byte b is the word of id 3 + b.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "esscher/base/linalg.h"
#include "esscher/io/file.h"

namespace esscher {

class Tokenizer {
 public:
  // The words of ids 0, 1, .. with their scores. Of equal words the last one is used, because the
  // words of bytes may also be words of their own further on.
  Tokenizer(std::vector<std::string> words, std::vector<float> scores);

  // Ids of a text, which begin with kBeginOfText. O(n log n). Throws ArgumentError if a byte has no
  // id in this vocabulary.
  [[nodiscard]] std::vector<Index> encode(std::string_view text) const;

  [[nodiscard]] const std::string& word(Index id) const {
    return words_[static_cast<std::size_t>(id)];
  }

  static constexpr Index kBeginOfText = 1;
  static constexpr Index kFirstByte = 3;

 private:
  [[nodiscard]] std::vector<Index> characters(std::string_view text) const;

  std::vector<std::string> words_;
  std::vector<float> scores_;
  std::unordered_map<std::string, Index> ids_;
};

// A file tokenizer.bin with `vocab` words. Throws FileError that names `where` and what is wrong.
Tokenizer parse_tokenizer(std::string_view where, Bytes bytes, Index vocab);

// One text per line, as token ids; empty lines are passed over.
std::vector<std::vector<Index>> encode_lines(const Tokenizer& tokenizer, std::string_view text);

}  // namespace esscher
