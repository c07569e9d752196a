#include "esscher/simd/targets.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

#include "esscher/base/error.h"

namespace esscher {

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    names.emplace_back(hwy::TargetName(target));
  }
  return names;
}

void force_simd_target(std::string_view name) {
  hwy::SetSupportedTargetsForTest(0);
  if (name.empty()) return;
  std::string known;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (name == hwy::TargetName(target)) {
      hwy::SetSupportedTargetsForTest(target);
      return;
    }
    known.append(known.empty() ? "" : ", ").append(hwy::TargetName(target));
  }
  throw_argument("force_simd_target", "target", name, "one of " + known);
}

}  // namespace esscher
