// The statements about `esscher heads`:
//   window        a million keys from a file of floats through an exact window with a finite tail: at most
//                 twice the time of reading them (times_reading), within 1 GiB (peak_MiB);
//   million_keys  the whole diagnosis of one head with a million keys, read in pieces, fits in 1 GiB;
//   model         128 heads, n = 4096, d = 64, 128 queries each, mixtures up to 16 components, take
//                 under 60 s on 2 cores.
// The long head runs first: the peak of the process is its own, not that of the 128 heads in
// memory.
#include <benchmark/benchmark.h>

#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "esscher/heads/diagnose.h"
#include "esscher/heads/load.h"
#include "esscher/heads/window.h"

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

// A .npy file of float32 rows.
void write_floats(const std::filesystem::path& path, Index rows, std::uint64_t id) {
  std::ofstream file(path, std::ios::binary);
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(rows) + ", " + std::to_string(kWidth) + "), }";
  header.resize(117, ' ');
  file << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header << '\n';
  for (Index first = 0; first < rows; first += 10000) {
    const Eigen::MatrixXf part =
        normals(kWidth, std::min<Index>(10000, rows - first), id + 7 * first).cast<float>();
    file.write(reinterpret_cast<const char*>(part.data()), part.size() * 4);
  }
}

// CPU time, which other programs on the machine disturb little.
double seconds_of(const std::function<void()>& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

void window(benchmark::State& state) {
  const auto folder = std::filesystem::temp_directory_path() / "esscher_window_bench";
  std::filesystem::create_directories(folder);
  write_floats(folder / "Q.npy", 16, 1);
  write_floats(folder / "K.npy", kKeys, 2);
  write_floats(folder / "V.npy", kKeys, 3);
  const Head head = load_heads(folder).front();
  constexpr Index kChunk = 8192;
  double sum = 0;
  const auto pass = [&](WindowedHead* to) {
    for (Index first = 0; first < kKeys; first += kChunk) {
      const Index rows = std::min(kChunk, kKeys - first);
      const Matrix K = head.K(first, rows), V = head.V(first, rows);
      sum += K(0, 0) + V(0, 0);
      if (to != nullptr) to->push(K, V);
    }
  };
  double reading = 1e300, through = 1e300;
  for (auto _ : state) {
    for (int round = 0; round < 3; ++round) {
      reading = std::min(reading, seconds_of([&] { pass(nullptr); }));
      WindowedHead windowed(kWidth, kWidth, {.window = 64});
      through = std::min(through, seconds_of([&] { pass(&windowed); }));
      sum += windowed(0.125 * head.Q(0, 1).row(0).transpose())(0);
    }
  }
  benchmark::DoNotOptimize(sum);
  state.counters["reading_s"] = reading;
  state.counters["window_s"] = through;
  state.counters["times_reading"] = through / reading;
  state.counters["peak_MiB"] = peak_mebibytes();
  std::filesystem::remove_all(folder);
}
BENCHMARK(window)->Unit(benchmark::kSecond)->Iterations(1)->UseRealTime();

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
