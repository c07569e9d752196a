// Token sample complexity of attention in the setting of Bohbot et al. (arXiv 2512.10656): d = 50,
// Gaussian tokens and queries N(0, I/d) (our reading of their setting), U = scale * identity, 12
// scales 0.05..50, 12 lengths 10^3..10^5. `exact` is the whole study without sampling; `simulated`
// is its 200-replicate version, 100 queries with two prompts each, to be compared with
// bench/token_complexity_numpy.py. The simulated answer is checked against the exact one first.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "esscher/base/parallel.h"
#include "esscher/concentration/length.h"
#include "esscher/concentration/study.h"
#include "esscher/measure/gaussian.h"
#include "esscher/random/stream.h"
#include "esscher/simd/exp.h"

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

// The shortest certified prompt for Gaussian tokens in d = 64, one thread, CPU time.
void certified_length(benchmark::State& state) {
  set_thread_count(1);
  const Matrix I = Matrix::Identity(64, 64);
  const Problem isotropic{Gaussian(I), Attention::from_uv(0.1 * I, I), AnyMeasure(Gaussian(I))};
  LengthOptions wanted;
  for (auto _ : state) {
    const LengthAnswer answer = shortest_length(isotropic, wanted);
    if (answer.status != LengthStatus::certified) state.SkipWithError("not certified");
  }
  set_thread_count(0);
}
BENCHMARK(certified_length)->Unit(benchmark::kMillisecond);

// Whole tokens: 64 queries with 24 prompts each to L = 16384 in d = 6, one thread, CPU time; and what
// the normals of these tokens cost.
constexpr std::int64_t kDirectQueries = 64, kDirectPrompts = 24, kDirectLength = 16384;

void direct(benchmark::State& state) {
  set_thread_count(1);
  const Matrix I = Matrix::Identity(6, 6);
  const Problem small{Gaussian(I), Attention::from_uv(0.5 * I, I), AnyMeasure(Gaussian(I))};
  StudyOptions o;
  o.lengths = {16, 64, 256, 1024, 4096, kDirectLength};
  o.metrics = {Metric::output};
  if (state.range(0) != 0) o.metrics = {Metric::output, Metric::grad_v, Metric::grad_u};
  o.engine = Engine::direct;
  o.queries = kDirectQueries;
  o.replicates = kDirectPrompts;
  for (auto _ : state) benchmark::DoNotOptimize(study(small, o).rows.back().value);
  set_thread_count(0);
}
BENCHMARK(direct)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void normals_and_exponentials(benchmark::State& state) {
  std::vector<double> normals(6 * 256), scores(256);
  for (auto _ : state) {
    for (std::int64_t i = 0; i < kDirectQueries * kDirectPrompts * kDirectLength / 256; ++i) {
      Stream(7).fill_normal(static_cast<std::uint64_t>(i) * normals.size(), normals);
      std::copy_n(normals.begin(), scores.size(), scores.begin());
      simd::exp_array(std::span<const double>(scores), std::span<double>(scores));
      benchmark::DoNotOptimize(scores.data());
    }
  }
}
BENCHMARK(normals_and_exponentials)->Unit(benchmark::kMillisecond);

}  // namespace
