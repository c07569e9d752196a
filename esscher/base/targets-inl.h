// Which instruction sets a SIMD file is compiled for; include before any Highway header.
// SSSE3 and AVX3_DL differ from their neighbours by instructions no kernel here uses.
#pragma once

// Under sanitizers baseline and AVX2 show what there is to see: the source is the same.
#ifdef ESSCHER_FEW_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
