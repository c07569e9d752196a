// The authors' training step (docs/maths/icl.md: KQVO, d = 5, batch 128, fresh prompts): time per
// step and per token.
//
//   train_step_bench                         steps at several lengths, 1 and 2 threads
//   train_step_bench --time STEPS SETTING    nanoseconds of CPU time per step, best and median
//   train_step_bench --gradient N SETTING    mean and error of the first gradient over N batches
//   train_step_bench --curve N RATE SETTING  mean and error of the loss curve over N runs
//
// SETTING is L HEADS D BATCH FEATURES, where FEATURES may also be denoising or classification:
// layers with a residual on prompts of a mixture, in the entries of their matrices. The last three
// run on one thread and print JSON for bench/against_torch/train_step.py.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "esscher/base/parallel.h"
#include "esscher/json/json.h"
#include "esscher/task/classification.h"
#include "esscher/task/denoising.h"
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

// Four clusters on a sphere of radius 2, or two classes, with means that every prompt draws.
ContextTask mixture_task(const std::string& name, Index d) {
  if (name == "denoising") {
    DenoisingTask task;
    task.means = {.law = MeansLaw::sphere, .fixed = {}, .count = 4, .dim = d, .scale = 2};
    task.gamma = 0.5;
    task.xi = 0.5;
    return denoising_task(task);
  }
  ClassificationTask task;
  task.means = {.law = MeansLaw::gaussian, .fixed = {}, .count = 2, .dim = d, .scale = 1};
  task.cov = Matrix::Identity(d, d);
  return classification_task(task);
}

LayerModel mixture_model(const std::string& name, Index heads, Index d) {
  const ContextTask task = mixture_task(name, d);
  const Stream draw(3);
  std::uint64_t next = 0;
  const auto matrix = [&](Index rows) {
    Matrix out(rows, task.token_dim);
    for (double& x : out.reshaped()) x = 0.3 * draw.normal(next++);
    return out;
  };
  Layer start{matrix(task.out_dim), {}};
  for (Index h = 0; h < heads; ++h) {
    start.heads.push_back({ModelKind::softmax, matrix(task.token_dim), matrix(task.out_dim)});
  }
  return {.task = task, .start = start};
}

// The authors' setting with another length, number of heads, dimension, batch or law of features.
TrainConfig read_setting(char** words) {
  TrainConfig config = TrainConfig::authors(ModelKind::softmax, std::atoll(words[0]));
  config.heads = std::atoll(words[1]);
  const Index d = std::atoll(words[2]);
  config.batch = std::atoll(words[3]);
  const std::string features = words[4];
  if (features == "denoising" || features == "classification") {
    config.layer = mixture_model(features, config.heads, d);
    config.optimizer.learning_rate = 1e-3;
    return config;
  }
  LinearRegressionTask task = config.task.regression();
  task.dim = d;
  task.prompt_cov = task.query_cov = power_covariance(d, 0.5);
  task.task_variance = 1.0 / static_cast<double>(d);
  task.features = parse_enum<Features>(features);
  config.task = task;
  config.space.token_dim = config.space.key_dim = d + 1;
  config.space.score_scale = 1 / std::sqrt(static_cast<double>(d + 1));
  return config;
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void time_steps(const TrainConfig& config, int steps) {
  Trainer trainer(config);
  trainer.run(3);
  std::vector<double> seconds;
  for (int i = 0; i < steps; ++i) {
    const double start = cpu_seconds();
    trainer.run(1);
    seconds.push_back(cpu_seconds() - start);
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

void print_gradient(const TrainConfig& config, int batches) {
  const Trainer trainer(config);
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
void print_curve(TrainConfig config, int runs, double rate) {
  constexpr int kBlocks = 8, kSteps = 10;
  Vector sum = Vector::Zero(kBlocks), square = Vector::Zero(kBlocks);
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
  if (argc == 8 && std::strcmp(argv[1], "--time") == 0) {
    set_thread_count(1);
    time_steps(read_setting(argv + 3), std::atoi(argv[2]));
    return 0;
  }
  if (argc == 8 && std::strcmp(argv[1], "--gradient") == 0) {
    set_thread_count(1);
    print_gradient(read_setting(argv + 3), std::atoi(argv[2]));
    return 0;
  }
  if (argc == 9 && std::strcmp(argv[1], "--curve") == 0) {
    set_thread_count(1);
    print_curve(read_setting(argv + 4), std::atoi(argv[2]), std::atof(argv[3]));
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
