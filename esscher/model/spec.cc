#include "esscher/model/spec.h"

#include <nlohmann/json.hpp>
#include <string>

#include "esscher/base/error.h"
#include "esscher/io/strict_json.h"

namespace esscher {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(std::string_view where, const std::string& key, const std::string& value,
                         const std::string& expected) {
  throw FileError(std::string(where) + ": " + key + " = " + value + ", expected " + expected);
}

// The keys of one config.json, each with its type checked.
class Reader {
 public:
  Reader(std::string_view where, const Json& json) : where_(where), json_(json) {}

  [[nodiscard]] bool has(const std::string& key) const {
    return json_.contains(key) && !json_[key].is_null();
  }
  [[nodiscard]] Index size(const std::string& key) const {
    if (!has(key)) refuse(where_, key, "nothing", "a whole number");
    const Json& value = json_[key];
    const bool whole =
        value.is_number_integer() && value.get<double>() >= 1 && value.get<double>() <= 1e9;
    if (!whole) refuse(where_, key, value.dump(), "a whole number from 1 to 10^9");
    return value.get<Index>();
  }
  [[nodiscard]] Index size(const std::string& key, Index fallback) const {
    return has(key) ? size(key) : fallback;
  }
  [[nodiscard]] double number(const std::string& key, double fallback) const {
    if (!has(key)) return fallback;
    const Json& value = json_[key];
    if (!value.is_number() || !(value.get<double>() > 0)) {
      refuse(where_, key, value.dump(), "a positive number");
    }
    return value.get<double>();
  }
  [[nodiscard]] std::string text(const std::string& key, const std::string& fallback) const {
    if (!has(key)) return fallback;
    if (!json_[key].is_string()) refuse(where_, key, json_[key].dump(), "a text");
    return json_[key].get<std::string>();
  }
  [[nodiscard]] bool flag(const std::string& key, bool fallback) const {
    if (!has(key)) return fallback;
    if (!json_[key].is_boolean()) refuse(where_, key, json_[key].dump(), "true or false");
    return json_[key].get<bool>();
  }
  // A key that may only have this value.
  void only(const std::string& key, const std::string& served) const {
    const std::string got = text(key, served);
    if (got != served) refuse(where_, key, "\"" + got + "\"", "\"" + served + "\"");
  }
  void not_served(const std::string& key, const std::string& what) const {
    if (has(key) && json_[key] != Json(false)) {
      refuse(where_, key, json_[key].dump(), "null: " + what + " is not served");
    }
  }

 private:
  std::string_view where_;
  const Json& json_;
};

ModelSpec llama_spec(const Reader& in) {
  in.only("hidden_act", "silu");
  in.not_served("rope_scaling", "scaled rotary positions");
  in.not_served("sliding_window", "a sliding window");
  in.not_served("attention_bias", "a bias in attention");
  in.not_served("mlp_bias", "a bias in the feed-forward layer");
  ModelSpec spec;
  spec.family = ModelFamily::llama;
  spec.dim = in.size("hidden_size");
  spec.hidden = in.size("intermediate_size");
  spec.layers = in.size("num_hidden_layers");
  spec.heads = in.size("num_attention_heads");
  spec.kv_heads = in.size("num_key_value_heads", spec.heads);
  spec.head_dim = in.size("head_dim", spec.heads > 0 ? spec.dim / spec.heads : 0);
  spec.vocab = in.size("vocab_size");
  spec.context = in.size("max_position_embeddings");
  spec.norm_eps = in.number("rms_norm_eps", 1e-6);
  spec.rotary = {.base = in.number("rope_theta", 10000), .pairs = RotaryPairs::halves};
  spec.tied = in.flag("tie_word_embeddings", false);
  return spec;
}

ModelSpec gpt2_spec(const Reader& in) {
  in.only("activation_function", "gelu_new");
  in.not_served("scale_attn_by_inverse_layer_idx", "a scale per layer");
  ModelSpec spec;
  spec.family = ModelFamily::gpt2;
  spec.dim = in.size("n_embd");
  spec.hidden = in.size("n_inner", 4 * spec.dim);
  spec.layers = in.size("n_layer");
  spec.heads = in.size("n_head");
  spec.kv_heads = spec.heads;
  spec.head_dim = spec.dim / spec.heads;
  spec.vocab = in.size("vocab_size");
  spec.context = in.has("n_positions") ? in.size("n_positions") : in.size("n_ctx");
  spec.norm_eps = in.number("layer_norm_epsilon", 1e-5);
  spec.tied = true;
  return spec;
}

}  // namespace

ModelSpec parse_model_spec(std::string_view where, std::string_view text) {
  check_strict_json(where, text);
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw FileError(std::string(where) + ": expected a JSON object");
  const Reader in(where, json);
  const std::string type = in.text("model_type", "");
  ModelSpec spec;
  if (type == "llama") {
    spec = llama_spec(in);
  } else if (type == "gpt2") {
    spec = gpt2_spec(in);
  } else {
    refuse(where, "model_type", "\"" + type + "\"", "\"llama\" or \"gpt2\"");
  }
  check_spec(where, spec);
  return spec;
}

void check_spec(std::string_view where, const ModelSpec& spec) {
  const auto positive = [&](const char* what, Index value) {
    if (value < 1) refuse(where, what, std::to_string(value), "at least 1");
  };
  positive("width", spec.dim);
  positive("hidden width", spec.hidden);
  positive("layers", spec.layers);
  positive("heads", spec.heads);
  positive("heads of keys", spec.kv_heads);
  positive("width of a head", spec.head_dim);
  positive("words", spec.vocab);
  positive("context", spec.context);
  if (spec.heads % spec.kv_heads != 0) {
    refuse(where, "heads of keys", std::to_string(spec.kv_heads),
           "a divisor of the " + std::to_string(spec.heads) + " heads");
  }
  if (spec.family == ModelFamily::gpt2 && spec.heads * spec.head_dim != spec.dim) {
    refuse(where, "heads", std::to_string(spec.heads),
           "a divisor of the width " + std::to_string(spec.dim));
  }
  if (spec.family == ModelFamily::llama && spec.head_dim % 2 != 0) {
    refuse(where, "width of a head", std::to_string(spec.head_dim),
           "an even number, for rotary positions");
  }
}

}  // namespace esscher
