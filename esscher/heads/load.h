// Heads from files. Tensors are grouped by name:
//
//   X.Q, X.K, X.V      [n,d] each, for a head named X (also q/k/v, query/key/value; '.', '_' or
//   '/') X.Q .. [h,n,d]     h stacked heads named X.0 .. X.(h-1); a leading batch of 1 is dropped;
//   K and V
//                      may have fewer heads than Q (grouped queries)
//   X.scale, X.causal  one number each, or one per stacked head
//
// A lone Q, K, V is a head named after the file. Tensors stay in the file until they are read.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "esscher/heads/head.h"

namespace esscher {

struct HeadFileOptions {
  std::optional<double> scale;  // instead of X.scale; default 1/sqrt(d)
  std::optional<bool> causal;   // instead of X.causal; default false
};

// .safetensors, .npz, or a directory of .npy files (named like the tensors). Throws FileError
// naming file and head: no head found, Q, K or V missing, shapes that disagree, NaN rows (when
// read).
std::vector<Head> load_heads(const std::filesystem::path& path,
                             const HeadFileOptions& options = {});

}  // namespace esscher
