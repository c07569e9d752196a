// Heads from files. The tensors of a file are grouped by name:
//
//   X.Q [nq,d], X.K [n,d], X.V [n,dv]         one head, named X
//   X.Q [h,nq,d], X.K [g,n,d], X.V [g,n,dv]   h stacked heads, named X.0 .. X.(h-1)
//   X.scale, X.causal                         one number each, or one per stacked head
//   X.rotary [4]                              base, pairs (0 interleaved, 1 halves), dims (0: all),
//                                             position of key 0 (heads/rotary.h)
//
// The names q, k, v, query, key, value (or their plurals) serve as well, in any case. '.', '_' or
// '/' separates the name of the head from the rest. K and V may hold fewer heads than Q, if their
// number g divides h: consecutive heads of Q then share them (grouped queries). Leading dimensions
// of 1 before [h,n,d] are dropped. Tensors named Q, K, V alone are a head named after the file. A
// tensor stays in the file until it is read.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "esscher/heads/head.h"

namespace esscher {

struct HeadFileOptions {
  std::optional<double> scale = {};   // instead of X.scale; default 1/sqrt(d)
  std::optional<bool> causal = {};    // instead of X.causal; default false
  std::optional<Rotary> rotary = {};  // instead of X.rotary; default: not known
};

// Opens a .safetensors or .npz file, or a directory of .npy files named like the tensors. Throws
// FileError naming file and head if there is no head, if Q, K or V is missing, if shapes disagree,
// and later, when rows are read, if they hold NaN.
std::vector<Head> load_heads(const std::filesystem::path& path,
                             const HeadFileOptions& options = {});

}  // namespace esscher
