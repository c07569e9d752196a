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
      const Tokenizer tokenizer = parse_tokenizer("fuzz", bytes.subspan(1), 3);
      fuzz::require(tokenizer.encode(tokenizer.word(2)).front() == Tokenizer::kBeginOfText);
      return;
    }
    const Model model = parse_llama2c("fuzz", bytes);
    fuzz::require(model.embedding.rows() == model.spec.vocab);
    fuzz::require(model.embedding.allFinite() && model.layers.front().q.W.allFinite());
  });
}
