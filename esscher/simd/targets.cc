#include "esscher/simd/targets.h"

#include <cstdlib>

#include "esscher/base/error.h"
#include "esscher/simd/detail/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/simd/targets.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher::simd {
namespace {

HWY_EXPORT(target_name);

// Every target that this CPU can run, whether or not another one is forced now.
std::vector<std::int64_t> available() {
  static const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  return targets;
}

void use(std::int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);  // 0: no restriction
  hwy::GetChosenTarget().DeInit();           // the next dispatch chooses again
}

void use_named(std::string_view name) {
  std::string known;
  const std::vector<std::int64_t> targets = available();
  if (name.empty()) return use(0);
  for (const std::int64_t target : targets) {
    if (name == hwy::TargetName(target)) return use(target);
    known += (known.empty() ? "" : ", ") + std::string(hwy::TargetName(target));
  }
  throw_argument("force_target", "name (or ESSCHER_TARGET)", name, "one of " + known);
}

bool use_environment() {
  const char* name = std::getenv("ESSCHER_TARGET");
  if (name != nullptr) use_named(name);
  return true;
}

}  // namespace

std::vector<std::string> supported_targets() {
  std::vector<std::string> names;
  for (const std::int64_t target : available()) names.emplace_back(hwy::TargetName(target));
  return names;
}

std::string active_target() { return ESSCHER_DISPATCH(target_name)(); }

void force_target(std::string_view name) {
  obey_environment();  // so that it cannot overrule this call later
  use_named(name);
}

void obey_environment() {
  static const bool done = use_environment();
  static_cast<void>(done);
}

}  // namespace esscher::simd
#endif
