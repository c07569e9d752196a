// The two statements about `esscher heads`:
//   million_keys  one head with a million keys, read in pieces, fits in 1 GiB (peak_MiB);
//   model         128 heads, n = 4096, d = 64, 128 queries each, mixtures up to 16 components, take
//                 under 60 s on 2 cores.
// The long head runs first: the peak of the process is its own, not that of the 128 heads in
// memory.
#include <benchmark/benchmark.h>

#include <cmath>
#include <fstream>
#include <string>

#include "esscher/heads/diagnose.h"

namespace esscher {
namespace {

Matrix normals(Index rows, Index cols, std::uint64_t id) {
  Matrix out(rows, cols);
  Stream(5, id).fill_normal(0, {out.data(), static_cast<std::size_t>(out.size())});
  return out;
}

// Two clusters, so that EM has something to find.
Head synthetic(Index n, Index d, std::uint64_t id) {
  Matrix keys = normals(n, d, 4 * id);
  for (Index l = 0; l < n; l += 3) keys.row(l).array() += 1.0;
  const Matrix values = keys * normals(d, d, 4 * id + 1) / 8.0 + normals(n, d, 4 * id + 2);
  return make_head("h" + std::to_string(id), normals(n, d, 4 * id + 3), keys, values, 0.125, false);
}

double peak_mebibytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

// Rows made on demand stand in for a file: memory holds a chunk, not the head.
constexpr Index kKeys = 1'000'000;
constexpr Index kWidth = 64;

void million_keys(benchmark::State& state) {
  const auto rows = [](std::uint64_t id) {
    return [id](Index first, Index count) {
      Matrix out(count, kWidth);
      Stream(6, id).fill_normal(static_cast<std::uint64_t>(first * kWidth),
                                {out.data(), static_cast<std::size_t>(out.size())});
      return out;
    };
  };
  const Head head{.name = "long",
                  .n = kKeys,
                  .n_queries = kKeys,
                  .dk = kWidth,
                  .dv = kWidth,
                  .scale = 0.125,
                  .causal = false,
                  .Q = rows(1),
                  .K = rows(2),
                  .V = rows(3)};
  HeadOptions options;
  options.components = {2, 4, 8, 16};
  for (auto _ : state) benchmark::DoNotOptimize(diagnose(head, options));
  state.counters["peak_MiB"] = peak_mebibytes();
}
BENCHMARK(million_keys)->Unit(benchmark::kSecond)->Iterations(1)->UseRealTime();

void model(benchmark::State& state) {
  const auto heads = static_cast<std::int64_t>(state.range(0));
  std::vector<Head> model;
  for (std::int64_t h = 0; h < heads; ++h) model.push_back(synthetic(4096, 64, h));
  HeadOptions options;
  options.components = {2, 4, 8, 16};
  const HeadDiagnosis first = diagnose(model.front(), options);
  if (!(std::abs(first.gaussian.lin_c) < 10)) state.SkipWithError("implausible diagnosis");
  for (auto _ : state) {
    benchmark::DoNotOptimize(diagnose(model, options));
  }
}
BENCHMARK(model)->Arg(128)->Unit(benchmark::kSecond)->Iterations(1)->UseRealTime();

}  // namespace
}  // namespace esscher

BENCHMARK_MAIN();
