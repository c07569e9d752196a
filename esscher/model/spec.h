// The shape of a decoder model, as its config.json says it.
//
//   llama   RMSNorm, rotary positions, grouped queries, SwiGLU, no biases
//   gpt2    LayerNorm, learned positions, GELU (tanh form), biases
//
//   x += W_O attention(norm(x)),   x += feed_forward(norm(x)),   logits = W_out norm(x)
#pragma once

#include <filesystem>
#include <string_view>

#include "esscher/base/enum_names.h"
#include "esscher/base/linalg.h"
#include "esscher/heads/rotary.h"

namespace esscher {

enum class ModelFamily { llama, gpt2 };

constexpr auto enum_names(ModelFamily) {
  return EnumNames<ModelFamily, 2>{"model family",
                                   {{{ModelFamily::llama, "llama"}, {ModelFamily::gpt2, "gpt2"}}}};
}

struct ModelSpec {
  ModelFamily family = ModelFamily::llama;
  Index dim = 0;     // width of the residual stream
  Index hidden = 0;  // width of the feed-forward layer
  Index layers = 0;
  Index heads = 0;
  Index kv_heads = 0;  // divides heads
  Index head_dim = 0;
  Index vocab = 0;
  Index context = 0;  // longest text
  double norm_eps = 1e-5;
  Rotary rotary = {};  // llama
  bool tied = false;   // W_out is the embedding
};

// Reads the text of a config.json. Throws FileError that names `where`, the key, its value and what
// was expected: also for features that would change the numbers and are not served here (other
// activations, scaled rotary positions, biases, sliding windows).
ModelSpec parse_model_spec(std::string_view where, std::string_view text);

// Throws FileError unless every size is positive and they fit together.
void check_spec(std::string_view where, const ModelSpec& spec);

}  // namespace esscher
