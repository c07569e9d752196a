// Checkpoints of llama2.c, in the order of its first format: embedding, then each kind of weight for
// all layers, the last norm, two tables of rotations that are not needed, and W_out if not tied.
#include <array>
#include <cmath>
#include <cstring>

#include "esscher/base/error.h"
#include "esscher/model/model.h"

namespace esscher {
namespace {

constexpr std::size_t kHeader = 7 * sizeof(std::int32_t);
constexpr std::int64_t kMost = 1'000'000'000;

class FloatReader {
 public:
  FloatReader(std::string_view where, Bytes bytes) : where_(where), bytes_(bytes) {}

  MatrixF matrix(Index rows, Index cols) {
    MatrixF out(rows, cols);
    read(out.data(), static_cast<std::size_t>(out.size()));
    return out;
  }
  VectorF vector(Index size) {
    VectorF out(size);
    read(out.data(), static_cast<std::size_t>(size));
    return out;
  }
  void skip(std::size_t numbers) { at_ += numbers * sizeof(float); }

 private:
  void read(float* out, std::size_t count) {
    std::memcpy(out, bytes_.data() + at_, count * sizeof(float));
    for (std::size_t i = 0; i < count; ++i) {
      if (!std::isfinite(out[i])) {
        throw FileError(std::string(where_) + ": number " +
                        std::to_string((at_ - kHeader) / sizeof(float) + i) +
                        " is not finite, expected weights");
      }
    }
    at_ += count * sizeof(float);
  }

  std::string_view where_;
  Bytes bytes_;
  std::size_t at_ = kHeader;
};

ModelSpec header(std::string_view where, Bytes bytes, bool& tied) {
  if (bytes.size() < kHeader) {
    throw FileError(std::string(where) + ": " + std::to_string(bytes.size()) +
                    " bytes, expected a header of 28");
  }
  std::array<std::int32_t, 7> h{};
  std::memcpy(h.data(), bytes.data(), kHeader);
  tied = h[5] > 0;
  for (std::size_t i = 0; i < h.size(); ++i) {
    const std::int64_t value = i == 5 ? std::abs(static_cast<std::int64_t>(h[i])) : h[i];
    if (value < 1 || value > kMost) {
      throw FileError(std::string(where) + ": header entry " + std::to_string(i) + " is " +
                      std::to_string(h[i]) + ", expected a checkpoint of llama2.c");
    }
  }
  ModelSpec spec{.family = ModelFamily::llama,
                 .dim = h[0],
                 .hidden = h[1],
                 .layers = h[2],
                 .heads = h[3],
                 .kv_heads = h[4],
                 .head_dim = h[0] / h[3],
                 .vocab = std::abs(static_cast<std::int64_t>(h[5])),
                 .context = h[6],
                 .norm_eps = 1e-5,
                 .rotary = {.base = 10000, .pairs = RotaryPairs::interleaved},
                 .tied = tied};
  check_spec(where, spec);
  return spec;
}

// Long double holds every product of three sizes up to 10^9 well enough to compare with a file.
long double expected_numbers(const ModelSpec& s) {
  using Big = long double;
  const Big kv = static_cast<Big>(s.kv_heads) * s.head_dim;
  const Big q = static_cast<Big>(s.heads) * s.head_dim;
  const Big layer = 2 * static_cast<Big>(s.dim) + 2 * q * s.dim + 2 * kv * s.dim +
                    3 * static_cast<Big>(s.hidden) * s.dim;
  const Big words = static_cast<Big>(s.vocab) * s.dim;
  return words + s.layers * layer + s.dim + static_cast<Big>(s.context) * s.head_dim +
         (s.tied ? 0 : words);
}

}  // namespace

Model parse_llama2c(std::string_view where, Bytes bytes) {
  Model model;
  bool tied = true;
  model.spec = header(where, bytes, tied);
  const ModelSpec& s = model.spec;
  const long double want = kHeader + 4 * expected_numbers(s);
  if (static_cast<long double>(bytes.size()) != want) {
    throw FileError(std::string(where) + ": " + std::to_string(bytes.size()) + " bytes, expected " +
                    to_text(static_cast<double>(want)) + " for the sizes in its header");
  }
  FloatReader in(where, bytes);
  model.embedding = in.matrix(s.vocab, s.dim);
  model.layers.resize(static_cast<std::size_t>(s.layers));
  const Index q = s.heads * s.head_dim;
  const Index kv = s.kv_heads * s.head_dim;
  for (ModelLayer& l : model.layers) l.attention_norm.scale = in.vector(s.dim);
  for (ModelLayer& l : model.layers) l.q.W = in.matrix(q, s.dim);
  for (ModelLayer& l : model.layers) l.k.W = in.matrix(kv, s.dim);
  for (ModelLayer& l : model.layers) l.v.W = in.matrix(kv, s.dim);
  for (ModelLayer& l : model.layers) l.o.W = in.matrix(s.dim, q);
  for (ModelLayer& l : model.layers) l.feed_norm.scale = in.vector(s.dim);
  for (ModelLayer& l : model.layers) l.gate.W = in.matrix(s.hidden, s.dim);
  for (ModelLayer& l : model.layers) l.down.W = in.matrix(s.dim, s.hidden);
  for (ModelLayer& l : model.layers) l.up.W = in.matrix(s.hidden, s.dim);
  model.final_norm.scale = in.vector(s.dim);
  in.skip(static_cast<std::size_t>(s.context) * static_cast<std::size_t>(s.head_dim));
  if (!tied) model.output = in.matrix(s.vocab, s.dim);
  return model;
}

}  // namespace esscher
