// Direct kernels on given tokens, float32, against their slow twins and against reading the memory.
// Counter ns_per_token is wall time (Google Benchmark prints it with an "s"). Every benchmark
// checks the answer before timing it.
#include <benchmark/benchmark.h>

#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "esscher/base/parallel.h"
#include "esscher/random/stream.h"
#include "esscher/tilt/detail/tilt_slow.h"
#include "esscher/tilt/many.h"
#include "esscher/tilt/tilt.h"

namespace esscher {
namespace {

using Floats = std::vector<float>;

// [n,d] standard normal times scale; kept, because 2^20 rows take a while to draw.
const Floats& normals(std::uint64_t seed, Index n, Index d, double scale = 1) {
  static std::map<std::pair<std::uint64_t, Index>, Floats> kept;
  Floats& x = kept[{seed, n * d}];
  if (!x.empty()) return x;
  x.resize(static_cast<std::size_t>(n * d));
  const Stream stream(seed, 1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(scale * stream.normal(i));
  return x;
}

void check(double error, double allowed) {
  if (!(error <= allowed)) {
    throw std::runtime_error("wrong answer: error " + std::to_string(error * 1e6) + "e-6");
  }
}

double error(const Vector& got, const Vector& want) {
  return (got - want).cwiseAbs().maxCoeff() / std::max(1.0, want.cwiseAbs().maxCoeff());
}

void finish(benchmark::State& state, Index tokens) {
  set_thread_count(0);
  state.counters["ns_per_token"] = benchmark::Counter(
      static_cast<double>(tokens) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// Arguments: log2 of the length, threads.
void read_floor(benchmark::State& state) {
  const Index n = Index{1} << state.range(0), d = 64;
  const Floats &k = normals(1, n, d), &v = normals(2, n, d);
  for (auto _ : state) {
    float sum = 0;
    for (std::size_t i = 0; i < k.size(); i += 16) sum += k[i] + v[i];
    benchmark::DoNotOptimize(sum);
  }
  finish(state, n);
}

void one_query(benchmark::State& state) {
  const Index n = Index{1} << state.range(0), d = 64;
  const Rows<float> k(normals(1, n, d).data(), n, d), v(normals(2, n, d).data(), n, d);
  const Floats& a = normals(3, 1, d, 0.125);
  set_thread_count(static_cast<int>(state.range(1)));
  const Rows<float> k_head = k.slice(0, std::min<Index>(n, 1 << 14));
  const Rows<float> v_head = v.slice(0, k_head.n);
  check(error(tilt<float>(a, k_head, v_head).mean(), slow::tilt<float>(a, k_head, v_head).mean()),
        1e-6);
  for (auto _ : state) benchmark::DoNotOptimize(tilt<float>(a, k, v));
  finish(state, n);
}

void forward_and_vjp(benchmark::State& state) {
  const Index n = Index{1} << state.range(0), d = 64;
  const Rows<float> z(normals(1, n, d).data(), n, d);
  const Floats &a = normals(3, 1, d, 0.125), &r = normals(4, 1, d, 0.125);
  set_thread_count(static_cast<int>(state.range(1)));
  const Rows<float> head = z.slice(0, std::min<Index>(n, 1 << 14));
  check(error(tilt_product<float>(a, r, head, head).product_mean(),
              slow::tilt_product<float>(a, r, head, head).product_mean()),
        5e-6);
  for (auto _ : state) benchmark::DoNotOptimize(tilt_product<float>(a, r, z, z));
  finish(state, n);
}

void slow_twin(benchmark::State& state) {
  const Index n = Index{1} << state.range(0), d = 64;
  const Rows<float> z(normals(1, n, d).data(), n, d);
  const Floats &a = normals(3, 1, d, 0.125), &r = normals(4, 1, d, 0.125);
  for (auto _ : state) benchmark::DoNotOptimize(slow::tilt_product<float>(a, r, z, z));
  finish(state, n);
}

void many_queries(benchmark::State& state) {
  const Index n = Index{1} << state.range(0), d = 64, q = 64;
  const Rows<float> k(normals(1, n, d).data(), n, d), v(normals(2, n, d).data(), n, d);
  const Rows<float> queries(normals(5, q, d, 0.125).data(), q, d);
  set_thread_count(static_cast<int>(state.range(1)));
  const Rows<float> k_head = k.slice(0, 5000), v_head = v.slice(0, 5000);
  const Matrix means = tilt_many<float>(queries, k_head, v_head).mean;
  for (const Index i : {Index{0}, q - 1}) {
    const std::span<const float> a(queries.data + i * d, static_cast<std::size_t>(d));
    check(error(means.row(i), slow::tilt<float>(a, k_head, v_head).mean()), 1e-6);
  }
  for (auto _ : state) benchmark::DoNotOptimize(tilt_many<float>(queries, k, v));
  finish(state, n);
}

void batch_of_prompts(benchmark::State& state) {
  const Index b = 128, length = state.range(0), d = 6;
  const Rows<float> z(normals(6, b * length, d).data(), b * length, d);
  const Rows<float> a(normals(7, b, d, 0.4).data(), b, d), r(normals(8, b, d, 0.4).data(), b, d);
  set_thread_count(static_cast<int>(state.range(1)));
  const TiltRows got = tilt_batch<float>(a, r, z, length);
  for (const Index i : {Index{0}, b - 1}) {
    const Rows<float> prompt = z.slice(i * length, length);
    const TiltState want =
        slow::tilt_product<float>({a.data + i * d, 6}, {r.data + i * d, 6}, prompt, prompt);
    check(error(got.mean.row(i), want.mean()), 2e-6);
    check(error(got.product.row(i), want.product_mean()), 5e-6);
  }
  for (auto _ : state) benchmark::DoNotOptimize(tilt_batch<float>(a, r, z, length));
  finish(state, b * length);
}

BENCHMARK(read_floor)->Args({12, 1})->Args({20, 1});
BENCHMARK(one_query)->Args({12, 1})->Args({20, 1})->Args({20, 2})->UseRealTime();
BENCHMARK(forward_and_vjp)->Args({12, 1})->Args({20, 1})->Args({20, 2})->UseRealTime();
BENCHMARK(slow_twin)->Args({12, 1});
BENCHMARK(many_queries)->Args({13, 1})->Args({17, 1})->Args({17, 2})->UseRealTime();
BENCHMARK(batch_of_prompts)
    ->Args({10, 1})
    ->Args({100, 1})
    ->Args({1000, 1})
    ->Args({1000, 2})
    ->UseRealTime();

}  // namespace
}  // namespace esscher

BENCHMARK_MAIN();
