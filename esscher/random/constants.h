// Constants that the scalar and the SIMD form of the generators share.
#pragma once

#include <cstdint>

namespace esscher::philox {

inline constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
inline constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
inline constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
inline constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
inline constexpr int kRounds = 10;

}  // namespace esscher::philox

namespace esscher::normal_double {

// With m in [sqrt(1/2), sqrt(2)), f = m - 1 and s = f/(2+f), as in e_log.c of fdlibm (< 1 ulp),
//   log(m 2^k) = s (f^2/2 + R(s^2)) + k ln2_lo - f^2/2 + f + k ln2_hi
inline constexpr double kLn2High = 6.93147180369123816490e-01;
inline constexpr double kLn2Low = 1.90821492927058770002e-10;
inline constexpr double kLog[7] = {6.666666666666735130e-01, 3.999999999940941908e-01,
                                   2.857142874366239149e-01, 2.222219843214978396e-01,
                                   1.818357216161805012e-01, 1.531383769920937332e-01,
                                   1.479819860511658591e-01};
inline constexpr std::uint64_t kSqrtHalf = 0x3FE6A09E00000000;  // bits of about sqrt(1/2)
inline constexpr std::uint64_t kOne = 0x3FF0000000000000;
inline constexpr std::uint64_t kMantissa = 0x000FFFFFFFFFFFFF;
inline constexpr std::uint64_t kTwo52 = 0x4330000000000000;  // bits of 2^52

// On |x| <= pi/4, as in k_sin.c and k_cos.c of fdlibm,
//   sin x = x + x^3 (S0 + S1 x^2 + ..)
//   cos x = 1 - x^2/2 + x^4 (C0 + C1 x^2 + ..)
inline constexpr double kSin[6] = {-1.66666666666666324348e-01, 8.33333333332248946124e-03,
                                   -1.98412698298579493134e-04, 2.75573137070700676789e-06,
                                   -2.50507602534068634195e-08, 1.58969099521155010221e-10};
inline constexpr double kCos[6] = {4.16666666666666019037e-02, -1.38888888888741095749e-03,
                                   2.48015872894767294178e-05, -2.75573143513906633035e-07,
                                   2.08757232129817482790e-09, -1.13596475577881948265e-11};
inline constexpr double kQuarterPi = 7.85398163397448278999e-01;

}  // namespace esscher::normal_double

namespace esscher::normal_float {

// Minimax fits:
//   log(1+f) = f P(f)             1+f in [sqrt(1/2), sqrt(2)), error 4e-8 |f| + 1e-9
//   sin(pi/4 y) = y S(y^2)        |y| <= 1, error 3e-8
//   cos(pi/4 y) = C(y^2)          |y| <= 1, error 3e-8
inline constexpr float kLog[8] = {0.9999998211860657F,  -0.5000063180923462F, 0.3333611488342285F,
                                  -0.2496049553155899F, 0.19874423742294312F, -0.17323389649391174F,
                                  0.16409990191459656F, -0.10119298100471497F};
inline constexpr float kSin[4] = {0.7853981852531433F, -0.08074543625116348F, 0.002490007085725665F,
                                  -3.595450834836811e-05F};
inline constexpr float kCos[4] = {1.0F, -0.3084242641925812F, 0.015849914401769638F,
                                  -0.0003188805130776018F};
inline constexpr float kLn2 = 0.6931471805599453F;
inline constexpr std::uint32_t kSqrtHalf = 0x3F3504F3;
inline constexpr std::uint32_t kOne = 0x3F800000;
inline constexpr std::uint32_t kMantissa = 0x007FFFFF;

}  // namespace esscher::normal_float
