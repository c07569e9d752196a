// Prints the bit of the best instruction set of this machine among those that kernels are compiled for.
#include <cstdio>

#include "esscher/simd/targets-inl.h"
#include "hwy/highway.h"

int main() {
  const long long targets = hwy::SupportedTargets() & HWY_TARGETS;
  std::printf("%lld", targets & -targets);
}
