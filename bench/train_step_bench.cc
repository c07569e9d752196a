// The authors' training step (docs/maths/icl.md: KQVO, d = 5, batch 128, fresh prompts): time per
// step and per token, sampled engine.
//
//   train_step_bench                        steps at several lengths, 1 and 2 threads
//   train_step_bench --time L STEPS         nanoseconds per step, best and median, 1 thread
//   train_step_bench --gradient L BATCHES   mean and error of the first gradient
//   train_step_bench --curve L RUNS RATE    mean and error of the loss curve over runs
//
// The last three print JSON for bench/against_torch/train_step.py.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "esscher/base/parallel.h"
#include "esscher/json/json.h"
#include "esscher/training/trainer.h"

namespace {

using namespace esscher;

void step(benchmark::State& state, ModelKind model, int threads) {
  set_thread_count(threads);
  Trainer trainer(TrainConfig::authors(model, state.range(0)));
  for (auto _ : state) trainer.run(1);
  const double tokens = 128.0 * static_cast<double>(state.range(0));
  state.counters["token_time"] = benchmark::Counter(
      tokens, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["loss"] = trainer.last_loss();
  set_thread_count(0);
}

void time_steps(std::int64_t length, int steps) {
  set_thread_count(1);
  Trainer trainer(TrainConfig::authors(ModelKind::softmax, length));
  trainer.run(3);
  std::vector<double> seconds;
  for (int i = 0; i < steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    trainer.run(1);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  const Json result = {{"best_ns", 1e9 * seconds.front()},
                       {"median_ns", 1e9 * seconds[seconds.size() / 2]},
                       {"loss", trainer.last_loss()}};
  std::puts(dump(result).c_str());
}

Json mean_and_error(const Vector& sum, const Vector& square, int n) {
  const Vector mean = sum / n;
  const Vector error = ((square / n - mean.cwiseAbs2()).cwiseMax(0.0) / n).cwiseSqrt();
  return {{"mean", json_vector(mean)}, {"std_error", json_vector(error)}};
}

void print_gradient(std::int64_t length, int batches) {
  const Trainer trainer(TrainConfig::authors(ModelKind::softmax, length));
  const Index n = trainer.theta().size() + 1;
  Vector sum = Vector::Zero(n), square = Vector::Zero(n), g;
  for (int t = 0; t < batches; ++t) {
    Vector all(n);
    all(0) = trainer.gradient(t, g);
    all.tail(n - 1) = g;
    sum += all;
    square += all.cwiseAbs2();
  }
  Json result = mean_and_error(sum, square, batches);
  result["theta"] = json_vector(trainer.theta());
  std::puts(dump(result).c_str());
}

// Mean loss of blocks of steps, every run from its own start.
void print_curve(std::int64_t length, int runs, double rate) {
  constexpr int kBlocks = 8, kSteps = 10;
  Vector sum = Vector::Zero(kBlocks), square = Vector::Zero(kBlocks);
  TrainConfig config = TrainConfig::authors(ModelKind::softmax, length);
  config.optimizer.learning_rate = rate;
  for (int run = 0; run < runs; ++run) {
    config.seed = static_cast<std::uint64_t>(run);
    Trainer trainer(config);
    Vector loss = Vector::Zero(kBlocks);
    for (int t = 0; t < kBlocks * kSteps; ++t) {
      trainer.run(1);
      loss(t / kSteps) += trainer.last_loss() / kSteps;
    }
    sum += loss;
    square += loss.cwiseAbs2();
  }
  std::puts(dump(mean_and_error(sum, square, runs)).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "--time") == 0) {
    time_steps(std::atoll(argv[2]), std::atoi(argv[3]));
    return 0;
  }
  if (argc == 4 && std::strcmp(argv[1], "--gradient") == 0) {
    print_gradient(std::atoll(argv[2]), std::atoi(argv[3]));
    return 0;
  }
  if (argc == 5 && std::strcmp(argv[1], "--curve") == 0) {
    print_curve(std::atoll(argv[2]), std::atoi(argv[3]), std::atof(argv[4]));
    return 0;
  }
  for (const int threads : {1, 2}) {
    for (const ModelKind model : {ModelKind::softmax, ModelKind::linear}) {
      const std::string label = std::string(name(model)) + "/threads:" + std::to_string(threads);
      auto* run = benchmark::RegisterBenchmark(
          label.c_str(), [=](benchmark::State& state) { step(state, model, threads); });
      run->Arg(10)->Arg(100)->Arg(1000)->UseRealTime();
      if (model == ModelKind::linear) run->Arg(1'000'000);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
