#include "esscher/model/capture.h"

#include <map>
#include <mutex>

#include "esscher/io/safetensors.h"

namespace esscher {
namespace {

Array float_array(const Matrix& x) {
  const MatrixF values = x.cast<float>();
  return array_of(std::span<const float>(values.data(), static_cast<std::size_t>(values.size())),
                  {x.rows(), x.cols()});
}

Array numbers(const std::vector<double>& x) {
  return vector_array(Eigen::Map<const Vector>(x.data(), static_cast<Index>(x.size())));
}

}  // namespace

void capture_heads(const Model& model, const Texts& texts, const std::filesystem::path& file) {
  const ModelSpec& spec = model.spec;
  std::map<std::string, Array> tensors;
  std::mutex mutex;
  for (std::size_t t = 0; t < texts.size(); ++t) {
    const std::string text = texts.size() > 1 ? "t" + std::to_string(t) + "." : "";
    const auto title = [&](Index layer, Index head) {
      return text + "L" + std::to_string(layer) + ".H" + std::to_string(head);
    };
    const Pass pass = run_model(model, texts[t], [&](const HeadInput& in) {
      const std::string at = title(in.layer, in.head);
      {
        const std::lock_guard lock(mutex);
        tensors[at + ".Q"] = float_array(in.Q);
        tensors[at + ".K"] = float_array(in.K);
        tensors[at + ".V"] = float_array(in.V);
        tensors[at + ".scale"] = numbers({in.scale});
        tensors[at + ".causal"] = numbers({1});
        if (spec.family == ModelFamily::llama) {
          const bool halves = spec.rotary.pairs == RotaryPairs::halves;
          tensors[at + ".rotary"] = numbers({spec.rotary.base, halves ? 1.0 : 0.0, 0, 0});
        }
      }
      return softmax_head(in);
    });
    for (Index l = 0; l < spec.layers; ++l) {
      const auto layer = static_cast<std::size_t>(l);
      for (Index h = 0; h < spec.heads; ++h) {
        const Matrix part =
            model.layers[layer].o.W.middleCols(h * spec.head_dim, spec.head_dim).cast<double>();
        tensors[title(l, h) + ".W_O"] = float_array(part);
        tensors[title(l, h) + ".residual_norm"] = numbers({pass.residual_norm[layer]});
      }
    }
  }
  write_file(file, encode_safetensors(tensors, {{"model", model.name}}));
}

}  // namespace esscher
