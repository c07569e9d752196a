// Heads from files. The tensors of a file are grouped by name:
//
//   X.Q [nq,d], X.K [n,d], X.V [n,dv]         one head, named X
//   X.Q [h,nq,d], X.K [g,n,d], X.V [g,n,dv]   h stacked heads, named X.0 .. X.(h-1)
//   X.scale, X.causal                         one number each, or one per stacked head
//   X.rotary [4]                              base, pairs (0 interleaved, 1 halves), dims (0: all),
//                                             position of key 0 (heads/rotary.h)
//   X.sliding, X.softcap, X.sink, X.alibi     sliding window in keys, softcap, sink logit and slope
//                                             of positions (heads/rules.h), one number each or one
//                                             per stacked head
//   X.mask                                    [n], [nq,n], [h,nq,n] or [b,h,nq,n] (heads/layout.h):
//                                             booleans, true where a query sees a key, or numbers
//                                             that are added to scores, -inf to hide a key
//
// The names q, k, v, query, key, value (or their plurals) serve as well, in any case. '.', '_' or
// '/' separates the name of the head from the rest. K and V may hold fewer heads than Q, if their
// number g divides h: consecutive heads of Q then share them (grouped queries). Other layouts, such
// as [b,n,h,d], are named by the options or by "layout" in the metadata of a .safetensors file, and
// never guessed (heads/layout.h); head h of batch b is then X.b.h, or X.h in a batch of one. A causal
// head may have fewer queries than keys: they belong to the last keys. Tensors named Q, K, V alone
// are a head named after the file. A tensor stays in the file until it is read.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "esscher/heads/head.h"
#include "esscher/heads/layout.h"

namespace esscher {

struct HeadFileOptions {
  std::optional<double> scale = {};       // instead of X.scale; default 1/sqrt(d)
  std::optional<bool> causal = {};        // instead of X.causal; default false
  std::optional<Rotary> rotary = {};      // instead of X.rotary; default: not known
  std::optional<HeadLayout> layout = {};  // instead of the file's; default: [n,d] or [h,n,d]
  // Instead of the tensors of these names; default: none.
  std::optional<double> sliding = {}, softcap = {}, sink = {}, alibi = {};
};

// Opens a .safetensors or .npz file, or a directory of .npy files named like the tensors. Throws
// FileError naming file and head if there is no head, if Q, K or V is missing, if shapes disagree,
// and later, when rows are read, if they hold NaN.
std::vector<Head> load_heads(const std::filesystem::path& path,
                             const HeadFileOptions& options = {});

}  // namespace esscher
