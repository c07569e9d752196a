// Models of the Hugging Face layout: config.json beside one .safetensors file or its shards.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "esscher/base/error.h"
#include "esscher/io/safetensors.h"
#include "esscher/io/strict_json.h"
#include "esscher/model/model.h"

namespace esscher {
namespace {

namespace fs = std::filesystem;

// All tensors of a model by name, over its shards.
class Tensors {
 public:
  explicit Tensors(const fs::path& folder) {
    for (const fs::path& file : files_of(folder)) {
      files_.push_back(std::make_unique<SafetensorsFile>(file));
      for (const auto& [name, array] : files_.back()->content().tensors) {
        const auto [place, fresh] = tensors_.try_emplace(name, file.string(), &array);
        if (!fresh) {
          throw FileError(file.string() + ": tensor " + name + " is also in " +
                          place->second.first + ", expected one of them");
        }
      }
    }
    where_ = folder.string();
  }

  [[nodiscard]] bool has(const std::string& name) const { return tensors_.contains(name); }

  // A [rows,cols] tensor, or a vector as one row.
  [[nodiscard]] MatrixF matrix(const std::string& name, Index rows, Index cols) const {
    const Array& array = find(name, {rows, cols});
    MatrixF out(rows, cols);
    copy(name, array, out.data());
    return out;
  }
  [[nodiscard]] VectorF vector(const std::string& name, Index size) const {
    const Array& array = find(name, {size});
    VectorF out(size);
    copy(name, array, out.data());
    return out;
  }

 private:
  static std::vector<fs::path> files_of(const fs::path& folder) {
    const fs::path index = folder / "model.safetensors.index.json";
    std::vector<fs::path> files;
    if (fs::exists(index)) {
      const std::string text = read_text(index);
      check_strict_json(index.string(), text);
      const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
      if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
        throw FileError(index.string() + ": weight_map is missing, expected names of shards");
      }
      for (const auto& [tensor, file] : json["weight_map"].items()) {
        if (!file.is_string() || fs::path(file.get<std::string>()).has_parent_path()) {
          throw FileError(index.string() + ": weight_map." + tensor + " = " + file.dump() +
                          ", expected the name of a file in the same folder");
        }
        const fs::path path = folder / file.get<std::string>();
        if (std::find(files.begin(), files.end(), path) == files.end()) files.push_back(path);
      }
      return files;
    }
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    if (files.empty())
      throw FileError(folder.string() + ": no .safetensors file beside config.json");
    return files;
  }

  [[nodiscard]] const Array& find(const std::string& name, std::vector<std::int64_t> shape) const {
    const auto found = tensors_.find(name);
    Array wanted;
    wanted.shape = std::move(shape);
    if (found == tensors_.end()) {
      throw FileError(where_ + ": tensor " + name + " is missing, expected " + wanted.shape_text());
    }
    const auto& [file, array] = found->second;
    if (array->shape != wanted.shape) {
      throw FileError(file + ": tensor " + name + " has shape " + array->shape_text() +
                      ", expected " + wanted.shape_text());
    }
    return *array;
  }

  void copy(const std::string& name, const Array& array, float* out) const {
    const std::size_t count = array.count();
    for (std::size_t i = 0; i < count; ++i) {
      const double value = array.at(i);
      if (!std::isfinite(value)) {
        throw FileError(where_ + ": tensor " + name + ", element " + std::to_string(i) +
                        " is not finite, expected weights");
      }
      out[i] = static_cast<float>(value);
    }
  }

  std::string where_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, std::pair<std::string, const Array*>> tensors_;
};

void load_llama(const Tensors& in, Model& model) {
  const ModelSpec& s = model.spec;
  const Index q = s.heads * s.head_dim;
  const Index kv = s.kv_heads * s.head_dim;
  model.embedding = in.matrix("model.embed_tokens.weight", s.vocab, s.dim);
  for (Index l = 0; l < s.layers; ++l) {
    const std::string at = "model.layers." + std::to_string(l) + ".";
    ModelLayer& layer = model.layers.emplace_back();
    layer.attention_norm.scale = in.vector(at + "input_layernorm.weight", s.dim);
    layer.feed_norm.scale = in.vector(at + "post_attention_layernorm.weight", s.dim);
    layer.q.W = in.matrix(at + "self_attn.q_proj.weight", q, s.dim);
    layer.k.W = in.matrix(at + "self_attn.k_proj.weight", kv, s.dim);
    layer.v.W = in.matrix(at + "self_attn.v_proj.weight", kv, s.dim);
    layer.o.W = in.matrix(at + "self_attn.o_proj.weight", s.dim, q);
    layer.gate.W = in.matrix(at + "mlp.gate_proj.weight", s.hidden, s.dim);
    layer.up.W = in.matrix(at + "mlp.up_proj.weight", s.hidden, s.dim);
    layer.down.W = in.matrix(at + "mlp.down_proj.weight", s.dim, s.hidden);
  }
  model.final_norm.scale = in.vector("model.norm.weight", s.dim);
  if (!s.tied) model.output = in.matrix("lm_head.weight", s.vocab, s.dim);
}

// GPT-2 stores weights as [in,out].
Linear conv1d(const Tensors& in, const std::string& name, Index inputs, Index outputs) {
  return {in.matrix(name + ".weight", inputs, outputs).transpose(),
          in.vector(name + ".bias", outputs)};
}

Norm layer_norm(const Tensors& in, const std::string& name, Index dim) {
  return {in.vector(name + ".weight", dim), in.vector(name + ".bias", dim)};
}

void load_gpt2(const Tensors& in, Model& model) {
  const ModelSpec& s = model.spec;
  const std::string root = in.has("wte.weight") ? "" : "transformer.";
  model.embedding = in.matrix(root + "wte.weight", s.vocab, s.dim);
  model.positions = in.matrix(root + "wpe.weight", s.context, s.dim);
  for (Index l = 0; l < s.layers; ++l) {
    const std::string at = root + "h." + std::to_string(l) + ".";
    ModelLayer& layer = model.layers.emplace_back();
    layer.attention_norm = layer_norm(in, at + "ln_1", s.dim);
    layer.feed_norm = layer_norm(in, at + "ln_2", s.dim);
    const Linear qkv = conv1d(in, at + "attn.c_attn", s.dim, 3 * s.dim);
    const auto part = [&](Index i) {
      return Linear{qkv.W.middleRows(i * s.dim, s.dim), qkv.b.segment(i * s.dim, s.dim)};
    };
    layer.q = part(0);
    layer.k = part(1);
    layer.v = part(2);
    layer.o = conv1d(in, at + "attn.c_proj", s.dim, s.dim);
    layer.up = conv1d(in, at + "mlp.c_fc", s.dim, s.hidden);
    layer.down = conv1d(in, at + "mlp.c_proj", s.hidden, s.dim);
  }
  model.final_norm = layer_norm(in, root + "ln_f", s.dim);
}

}  // namespace

Model load_model(const fs::path& path) {
  if (!fs::is_directory(path)) {
    if (path.extension() != ".bin") {
      throw FileError(path.string() +
                      ": expected a folder with config.json or a checkpoint *.bin of llama2.c");
    }
    const MappedFile file(path);
    Model model = parse_llama2c(path.string(), file.bytes());
    model.name = path.stem().string();
    return model;
  }
  const fs::path config = path / "config.json";
  Model model;
  model.name =
      path.filename().empty() ? path.parent_path().filename().string() : path.filename().string();
  model.spec = parse_model_spec(config.string(), read_text(config));
  const Tensors tensors(path);
  model.spec.family == ModelFamily::llama ? load_llama(tensors, model) : load_gpt2(tensors, model);
  return model;
}

}  // namespace esscher
