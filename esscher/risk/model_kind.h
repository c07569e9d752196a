// The two kinds of attention that are compared everywhere.
#pragma once

#include "esscher/base/enum_names.h"

namespace esscher {

enum class ModelKind { softmax, linear };

constexpr auto enum_names(ModelKind) {
  return EnumNames<ModelKind, 2>{
      "kind of attention", {{{ModelKind::softmax, "softmax"}, {ModelKind::linear, "linear"}}}};
}

}  // namespace esscher
