// Token sample complexity of attention in the setting of Bohbot et al. (arXiv 2512.10656): d = 50,
// Gaussian tokens and queries N(0, I/d) (our reading of their setting), U = scale * identity, 12
// scales 0.05..50, 12 lengths 10^3..10^5. `exact` is the whole study without sampling; `simulated`
// is its 200-replicate version, 100 queries with two prompts each, to be compared with
// bench/token_complexity_numpy.py. The simulated answer is checked against the exact one first.
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "esscher/concentration/study.h"
#include "esscher/measure/gaussian.h"

namespace {

using namespace esscher;

constexpr Index kDim = 50;
constexpr int kPoints = 12;
constexpr std::int64_t kPrompts = 200;

double geometric(double from, double to, int i) {
  return from * std::pow(to / from, i / (kPoints - 1.0));
}

Problem problem(int i) {
  const Matrix I = Matrix::Identity(kDim, kDim);
  const Gaussian law(I / static_cast<double>(kDim));
  return {law, Attention::from_uv(geometric(0.05, 50, i) * I, I), AnyMeasure(law)};
}

StudyOptions options(Engine engine) {
  StudyOptions o;
  for (int i = 0; i < kPoints; ++i) o.lengths.push_back(std::llround(geometric(1e3, 1e5, i)));
  o.metrics = {Metric::output};
  o.engine = engine;
  o.queries = kPrompts / 2;
  o.replicates = 2;  // the least that shows the noise of prompts apart from that of queries
  return o;
}

double whole_study(Engine engine) {
  double sum = 0;
  for (int i = 0; i < kPoints; ++i) sum += study(problem(i), options(engine)).rows.back().value;
  return sum;
}

void exact(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(whole_study(Engine::exact));
}
BENCHMARK(exact)->Unit(benchmark::kSecond)->UseRealTime()->Iterations(1);

void simulated(benchmark::State& state) {
  const StudyRow want = study(problem(6), options(Engine::exact)).rows.back();
  const StudyRow got = study(problem(6), options(Engine::sampled)).rows.back();
  if (std::abs(got.value - want.value) > 6 * got.std_error) state.SkipWithError("wrong answer");
  for (auto _ : state) benchmark::DoNotOptimize(whole_study(Engine::sampled));
}
BENCHMARK(simulated)->Unit(benchmark::kSecond)->UseRealTime()->Iterations(1);

}  // namespace
