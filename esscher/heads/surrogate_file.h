// Surrogates in a .safetensors file, so that another program can run them. For head X and k
// components, all F64:
//
//   X.gaussian.M [dv,dk], X.gaussian.b [dv]                       T = b + M a   (k = 1)
//   X.mixtureK.weights [k], .mean_k [k,dk], .mean_v [k,dv],
//             .cov_k [k,dk,dk], .cov_vk [k,dv,dk], .trace_v [k]   T_mix(a) of heads/surrogate.h
//
// with a = scale * q; the metadata entry "X.scale" holds the scale.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "esscher/heads/surrogate.h"

namespace esscher {

struct NamedSurrogate {
  std::string head;
  double scale = 1;
  Surrogate surrogate;
};

void write_surrogates(const std::filesystem::path& path,
                      const std::vector<NamedSurrogate>& surrogates);

// The mixture (k > 1) or Gaussian (k = 1) surrogate of a head. The Gaussian one comes back without
// key covariance, which its output does not need. FileError if it is not there.
NamedSurrogate read_surrogate(const std::filesystem::path& path, const std::string& head, Index k);

}  // namespace esscher
