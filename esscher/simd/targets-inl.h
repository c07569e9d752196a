// The instruction sets that a SIMD file is compiled for. Include this before any Highway header.
// The two sets left out differ from their neighbours by instructions that no kernel here uses.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
