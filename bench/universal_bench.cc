// Universal functions: one evaluation by quadrature, building a table, reading it. Each answer is
// checked before it is timed. Argument: log10 of the prompt length.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "esscher/universal/universal.h"
#include "esscher/universal/universal_table.h"

namespace {

using esscher::UniversalTable;

std::int64_t length_of(const benchmark::State& state) {
  return std::llround(std::pow(10.0, static_cast<double>(state.range(0))));
}

void require(bool ok, benchmark::State& state) {
  if (!ok) state.SkipWithError("wrong answer");
}

void quadrature(benchmark::State& state) {
  const std::int64_t L = length_of(state);
  require(esscher::universal(L, 2.0).error < 1e-13, state);
  for (auto _ : state) benchmark::DoNotOptimize(esscher::universal(L, 2.0));
}
BENCHMARK(quadrature)->Arg(2)->Arg(6)->Arg(12)->Arg(15)->Unit(benchmark::kMicrosecond);

void quadrature_order4(benchmark::State& state) {
  const std::int64_t L = length_of(state);
  for (auto _ : state) benchmark::DoNotOptimize(esscher::universal4(L, 2.0));
}
BENCHMARK(quadrature_order4)->Arg(2)->Arg(6)->Arg(12)->Arg(15)->Unit(benchmark::kMicrosecond);

void table_build(benchmark::State& state) {
  const std::int64_t L = length_of(state);
  for (auto _ : state) benchmark::DoNotOptimize(UniversalTable(L, 8.0));
}
BENCHMARK(table_build)
    ->Arg(2)
    ->Arg(6)
    ->Arg(12)
    ->Arg(15)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void table_read(benchmark::State& state) {
  const std::int64_t L = length_of(state);
  const UniversalTable table(L, 8.0);
  require(std::abs(table.at(3.3).M2c / esscher::universal(L, 3.3).M2c - 1) < 1e-10, state);
  std::vector<double> tau2(1024);
  for (std::size_t i = 0; i < tau2.size(); ++i)
    tau2[i] = std::fmod(0.618 * 64.0 * static_cast<double>(i), 64.0);
  for (auto _ : state) {
    for (double x : tau2) benchmark::DoNotOptimize(table.at_tau2(x));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(tau2.size()));
}
BENCHMARK(table_read)->Arg(2)->Arg(6)->Arg(12)->Arg(15);

}  // namespace
