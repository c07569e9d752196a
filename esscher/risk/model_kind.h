// The two kinds of attention that are compared everywhere.
#pragma once

#include <string>
#include <string_view>

#include "esscher/base/error.h"

namespace esscher {

enum class ModelKind { softmax, linear };

constexpr std::string_view name(ModelKind kind) {
  return kind == ModelKind::softmax ? "softmax" : "linear";
}

// Throws ArgumentError on another word.
inline ModelKind parse_model_kind(const std::string& text) {
  if (text == "softmax") return ModelKind::softmax;
  if (text == "linear") return ModelKind::linear;
  throw_argument("model", "kind", text, "softmax or linear");
}

}  // namespace esscher
