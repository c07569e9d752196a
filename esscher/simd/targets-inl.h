// Which instruction sets a SIMD file is compiled for; include before any Highway header.
// The two left out differ from their neighbours by instructions no kernel here uses.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
