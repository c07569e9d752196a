// The kernels as plain C functions for ctypes; float32 arrays, row-major.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "esscher/base/parallel.h"
#include "esscher/prompt/direct.h"
#include "esscher/tilt/many.h"
#include "esscher/tilt/tilt.h"

using esscher::Index;
using esscher::Rows;
using Floats = std::span<const float>;

#if defined(__x86_64__)
namespace {

// Independent sums, as many as hide the latency of a multiply-add in two units.
constexpr int kSums = 12;

__attribute__((target("avx2,fma"))) float sums_of_eight(Index rounds) {
  __m256 sums[kSums];
  for (__m256& sum : sums) sum = _mm256_set1_ps(1.0f);
  const __m256 factor = _mm256_set1_ps(0.999f), step = _mm256_set1_ps(0.001f);
  for (Index i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, step);
  }
  float total = 0;
  for (const __m256& sum : sums) total += _mm256_cvtss_f32(sum);
  return total;
}

__attribute__((target("avx512f"))) float sums_of_sixteen(Index rounds) {
  __m512 sums[kSums];
  for (__m512& sum : sums) sum = _mm512_set1_ps(1.0f);
  const __m512 factor = _mm512_set1_ps(0.999f), step = _mm512_set1_ps(0.001f);
  for (Index i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, step);
  }
  float total = 0;
  for (const __m512& sum : sums) total += _mm512_cvtss_f32(sum);
  return total;
}

// How many floats the widest multiply-add of this processor takes; 0 without AVX2.
int lanes() {
  if (__builtin_cpu_supports("avx512f")) return 16;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 8 : 0;
}

double multiply_adds(Index rounds) {
  if (lanes() == 0) return 0;
  const float total = lanes() == 16 ? sums_of_sixteen(rounds) : sums_of_eight(rounds);
  // The sum is positive, but the compiler cannot know it and has to compute it.
  return total > 0 ? 2.0 * kSums * lanes() * static_cast<double>(rounds) : 0;
}

}  // namespace
#endif

extern "C" {

void shim_threads(int threads) { esscher::set_thread_count(threads); }

// mean [d]
void shim_tilt(const float* a, const float* keys, const float* values, Index n, Index d,
               double* mean) {
  const auto state = esscher::tilt<float>(Floats(a, static_cast<std::size_t>(d)),
                                          Rows<float>(keys, n, d), Rows<float>(values, n, d));
  Eigen::Map<esscher::Vector>(mean, d) = state.mean();
}

// mean [d], product [d] = C_hat r
void shim_product(const float* a, const float* r, const float* tokens, Index n, Index d,
                  double* mean, double* product) {
  const auto dim = static_cast<std::size_t>(d);
  const Rows<float> z(tokens, n, d);
  const auto state = esscher::tilt_product<float>(Floats(a, dim), Floats(r, dim), z, z);
  Eigen::Map<esscher::Vector>(mean, d) = state.mean();
  Eigen::Map<esscher::Vector>(product, d) = state.product_mean();
}

// means [q,d]
void shim_many(const float* queries, Index q, const float* keys, const float* values, Index n,
               Index d, double* means) {
  const auto result = esscher::tilt_many<float>(Rows<float>(queries, q, d), Rows<float>(keys, n, d),
                                                Rows<float>(values, n, d));
  Eigen::Map<esscher::Matrix>(means, q, d) = result.mean;
}

void shim_many_double(const double* queries, Index q, const double* keys, const double* values,
                      Index n, Index d, double* means) {
  const auto result = esscher::tilt_many<double>(
      Rows<double>(queries, q, d), Rows<double>(keys, n, d), Rows<double>(values, n, d));
  Eigen::Map<esscher::Matrix>(means, q, d) = result.mean;
}

void shim_causal(const float* queries, Index q, const float* keys, const float* values, Index n,
                 Index d, double* means) {
  const auto result = esscher::tilt_causal<float>(
      Rows<float>(queries, q, d), Rows<float>(keys, n, d), Rows<float>(values, n, d));
  Eigen::Map<esscher::Matrix>(means, q, d) = result.mean;
}

// means, products [q,d]
void shim_many_product(const float* queries, const float* r, Index q, const float* tokens, Index n,
                       Index d, double* means, double* products) {
  const auto result = esscher::tilt_many_product<float>(
      Rows<float>(queries, q, d), Rows<float>(r, q, d), Rows<float>(tokens, n, d));
  Eigen::Map<esscher::Matrix>(means, q, d) = result.mean;
  Eigen::Map<esscher::Matrix>(products, q, d) = result.product;
}

// Runs `rounds` times twelve independent multiply-adds of the widest registers and returns their number
// of operations; 0 on processors without AVX2. Its time gives the peak of the machine.
double shim_multiply_adds(Index rounds) {
#if defined(__x86_64__)
  return multiply_adds(rounds);
#else
  return 0 * static_cast<double>(rounds);
#endif
}

// K, Q, V [d,d], queries and cotangents [b,d] -> outputs [b,d], gradients in K, Q, V [d,d]
void shim_batch(const float* K, const float* Q, const float* V, const float* queries,
                const float* g, const float* tokens, Index b, Index length, Index d,
                double* outputs, double* grad_K, double* grad_Q, double* grad_V) {
  using FloatRows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto matrix = [](const float* p, Index rows, Index columns) {
    return esscher::Matrix(Eigen::Map<const FloatRows>(p, rows, columns).cast<double>());
  };
  const auto attention =
      esscher::Attention::from_kqv(matrix(K, d, d), matrix(Q, d, d), matrix(V, d, d));
  const auto result = esscher::direct_batch(attention, Rows<float>(tokens, b * length, d), length,
                                            matrix(queries, b, d), matrix(g, b, d));
  Eigen::Map<esscher::Matrix>(outputs, b, d) = result.outputs;
  Eigen::Map<esscher::Matrix>(grad_K, d, d) = result.gradients.K;
  Eigen::Map<esscher::Matrix>(grad_Q, d, d) = result.gradients.Q;
  Eigen::Map<esscher::Matrix>(grad_V, d, d) = result.gradients.V;
}

// Reads both arrays side by side, 4096 tokens at a time, and nothing else: what any one-pass kernel
// must wait for. keys == values: one array.
std::uint64_t shim_read(const float* keys, const float* values, Index n, Index d) {
  const Index leaf = 4096, leaves = (n + leaf - 1) / leaf;
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(leaves), 0);
  esscher::parallel_for(leaves, [&](std::int64_t i) {
    const Index first = i * leaf * d, end = std::min(n, (i + 1) * leaf) * d;
    const auto* p = reinterpret_cast<const std::uint64_t*>(keys);
    const auto* q = reinterpret_cast<const std::uint64_t*>(values);
    std::uint64_t x0 = 0, x1 = 0, y0 = 0, y1 = 0;
    if (p == q) {
      for (Index j = first / 2; j + 15 < end / 2; j += 16) x0 += p[j], x1 += p[j + 8];
    } else {
      for (Index j = first / 2; j + 15 < end / 2; j += 16) {
        x0 += p[j], x1 += p[j + 8];  // one load per cache line
        y0 += q[j], y1 += q[j + 8];
      }
    }
    sums[static_cast<std::size_t>(i)] = x0 + x1 + y0 + y1;
  });
  std::uint64_t sum = 0;
  for (const std::uint64_t s : sums) sum += s;
  return sum;
}

}  // extern "C"
