#include <string>
#include <vector>

#include "esscher/model/model.h"
#include "esscher/model/spec.h"
#include "esscher/model/tokenizer.h"
#include "tests/fuzz/fuzz.h"

using namespace esscher;

// A config.json begins with a brace, a tokenizer of three words with a T; anything else is read as a
// checkpoint of llama2.c.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::run(data, size, [](Bytes bytes) {
    if (!bytes.empty() && bytes.front() == std::byte{'{'}) {
      check_spec("again", parse_model_spec("fuzz", as_text(bytes)));
      return;
    }
    if (!bytes.empty() && bytes.front() == std::byte{'T'}) {
      const Tokenizer parsed = parse_tokenizer("fuzz", bytes.subspan(1), 3);
      std::vector<std::string> words(259);  // marks and bytes, so that every text has tokens
      for (Index id = 0; id < 3; ++id) words.push_back(parsed.word(id));
      const Tokenizer tokenizer(words, std::vector<float>(words.size(), -1));
      const std::string text = parsed.word(0) + parsed.word(1) + parsed.word(2);
      const std::vector<Index> ids = tokenizer.encode(text);
      fuzz::require(ids.front() == Tokenizer::kBeginOfText && ids.size() <= text.size() + 2);
      return;
    }
    const Model model = parse_llama2c("fuzz", bytes);
    fuzz::require(model.embedding.rows() == model.spec.vocab);
    fuzz::require(model.embedding.allFinite() && model.layers.front().q.W.allFinite());
  });
}
