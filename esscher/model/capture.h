// The heads of a model as a file for `esscher heads`: tensors X.Q, X.K, X.V [n,d], X.scale, X.causal,
// X.rotary (heads/load.h), and X.W_O [dim,d], X.residual_norm [1], for X = L0.H0 and so on. Of
// several texts each has a prefix t0., t1., ...
#pragma once

#include <filesystem>

#include "esscher/model/effect.h"

namespace esscher {

void capture_heads(const Model& model, const Texts& texts, const std::filesystem::path& file);

}  // namespace esscher
