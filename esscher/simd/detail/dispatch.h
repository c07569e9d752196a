// Run-time choice of the instruction set, for .cc files with SIMD bodies. This is a private header.
//
// Include it before any Highway header. A SIMD file then reads
//   #include "esscher/simd/detail/dispatch.h"
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "esscher/folder/file.cc"
//   #include "hwy/foreach_target.h"
//   #include "hwy/highway.h"
// and calls its kernels by ESSCHER_DISPATCH(Function)(arguments).
#pragma once

#include "esscher/simd/targets-inl.h"
#include "esscher/simd/targets.h"

// The same as HWY_DYNAMIC_DISPATCH, after ESSCHER_TARGET has been obeyed.
#define ESSCHER_DISPATCH(Function) \
  (::esscher::simd::obey_environment(), HWY_DYNAMIC_DISPATCH(Function))
