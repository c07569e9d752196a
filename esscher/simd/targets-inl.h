// The instruction sets that a SIMD file is compiled for. Include this before any Highway header.
#pragma once

#ifdef ESSCHER_NATIVE_TARGET
// CMake's ESSCHER_TARGETS=native: one set, and the portable code that Highway always compiles.
#define HWY_DISABLED_TARGETS (~(ESSCHER_NATIVE_TARGET | HWY_SCALAR | HWY_EMU128))
#else
// The two sets left out differ from their neighbours by instructions that no kernel here uses.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
