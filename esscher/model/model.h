// A small decoder model with its weights in float32.
//
//   const Model model = load_model("stories/");       // config.json and .safetensors
//   const Model other = load_model("stories15M.bin"); // a checkpoint of llama2.c
//
// Weights of linear layers are [out,in]. Q of llama checkpoints of llama2.c turn interleaved pairs,
// those of Hugging Face turn halves; the spec says which.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "esscher/io/file.h"
#include "esscher/model/spec.h"
#include "esscher/simd/gemm_float.h"

namespace esscher {

// y = x W' + b; no bias if b is empty.
struct Linear {
  MatrixF W;
  VectorF b;
};

// Scale and, for LayerNorm, shift.
struct Norm {
  VectorF scale, shift;
};

struct ModelLayer {
  Norm attention_norm, feed_norm;
  Linear q, k, v, o;
  Linear gate;      // llama: silu(gate x) * up x
  Linear up, down;  // gpt2: down gelu(up x)
};

struct Model {
  std::string name;
  ModelSpec spec;
  MatrixF embedding;  // [vocab,dim]
  MatrixF positions;  // gpt2: [context,dim]
  std::vector<ModelLayer> layers;
  Norm final_norm;
  MatrixF output;  // [vocab,dim]; empty if tied

  [[nodiscard]] const MatrixF& output_weights() const { return spec.tied ? embedding : output; }
};

// A folder with config.json and model.safetensors, or with shards and model.safetensors.index.json;
// or a file *.bin of llama2.c. Tensors are F32, F16 or BF16. Throws FileError that names the file,
// the tensor, its shape and the expected one.
Model load_model(const std::filesystem::path& path);

// A checkpoint of llama2.c: seven integers (dim, hidden, layers, heads, kv heads, vocab, context; a
// negative vocab means that W_out follows), then float32 weights. Throws FileError if the size of
// the file is not what these integers say.
Model parse_llama2c(std::string_view where, Bytes bytes);

}  // namespace esscher
