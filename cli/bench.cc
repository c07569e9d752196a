// esscher bench: how fast the engines are on this machine, each answer checked before it is timed.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <vector>

#include "cli/verbs.h"
#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/random/stream.h"
#include "esscher/simd/targets.h"
#include "esscher/tilt/detail/tilt_slow.h"
#include "esscher/tilt/tilt.h"
#include "esscher/training/trainer.h"
#include "esscher/universal/universal_table.h"

namespace esscher::cli {
namespace {

constexpr int kRounds = 7;

struct Timing {
  std::string name;
  std::string unit;
  double best;
  double median;
};

// `scale` turns seconds per call into the unit of the row.
Timing measure(const std::string& name, const std::string& unit, double scale,
               const std::function<void()>& body) {
  std::vector<double> times;
  body();  // first touch of memory and tables
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    times.push_back(scale * spent.count());
  }
  std::sort(times.begin(), times.end());
  return {name, unit, times.front(), times[kRounds / 2]};
}

void check_answer(const std::string& name, double got, double want, double relative) {
  if (std::abs(got - want) <= relative * std::abs(want)) return;
  throw RuntimeFailure(fmt::format("bench {}: got {}, the slow twin says {}", name, got, want));
}

Timing direct_one_query() {
  constexpr Index n = 1 << 18;
  constexpr Index d = 64;
  std::vector<double> draws(static_cast<std::size_t>(n * d));
  Stream(1).fill_normal(0, draws);
  const std::vector<float> tokens(draws.begin(), draws.end());
  const std::vector<float> a(d, 0.125F);
  const Rows<float> rows(tokens.data(), n, d);
  const std::string name = "direct, 1 query, L = 2^18, d = 64, float";
  const Rows<float> few = rows.slice(0, 4096);
  check_answer(name, tilt<float>(a, few, few).mean()(0), slow::tilt<float>(a, few, few).mean()(0),
               1e-5);
  return measure(name, "ns/token", 1e9 / n, [&] { tilt<float>(a, rows, rows); });
}

Timing universal_once() {
  const std::string name = "universal(L = 10^6, tau = 1)";
  check_answer(name, universal(1000000, 1.0).M1, 0.9999972817, 1e-9);
  return measure(name, "us", 1e6, [] { universal(1000000, 1.0); });
}

Timing table_read() {
  const UniversalTable table(1000000, 8.0);
  const std::string name = "table of universal functions, read";
  check_answer(name, table.at(1.0).M1, universal(1000000, 1.0).M1, 1e-10);
  constexpr int kReads = 100000;
  double sum = 0;
  Timing timing = measure(name, "ns", 1e9 / kReads, [&] {
    for (int i = 0; i < kReads; ++i) sum += table.at_tau2(1e-4 * i).H;
  });
  if (!(sum > 0)) throw RuntimeFailure("bench " + name + ": sum is not positive");
  return timing;
}

// The authors' step: 128 fresh prompts, forward and gradient in K, Q, V, O.
Timing training_step(ModelKind model, std::int64_t L) {
  const Trainer trainer(TrainConfig::authors(model, L));
  Vector gradient;
  const std::string name = fmt::format("training step, {}, batch 128, L = {}",
                                       model == ModelKind::softmax ? "softmax" : "linear", L);
  const double loss = trainer.gradient(0, gradient);
  if (!std::isfinite(loss) || !gradient.allFinite()) {
    throw RuntimeFailure("bench " + name + ": the gradient is not finite");
  }
  double sum = 0;
  return measure(name, "us", 1e6, [&] { sum += trainer.gradient(1, gradient); });
}

}  // namespace

void add_bench(const Command& app, Globals& globals) {
  const Command verb = add_verb(app, globals, "bench", "Time the engines on this machine",
                                "Best and median of seven rounds; bench/ compares with PyTorch.\n"
                                "Examples:\n"
                                "  esscher bench\n"
                                "  esscher bench --threads 1 --json",
                                {.config = false, .out = true, .seed = false});
  verb.run([&globals] {
    std::vector<Timing> timings = {direct_one_query(), universal_once(), table_read()};
    for (const std::int64_t L : {10, 100, 1000}) {
      timings.push_back(training_step(ModelKind::softmax, L));
    }
    timings.push_back(training_step(ModelKind::linear, 1000000));
    Json rows = Json::array();
    std::string text = fmt::format("{} threads, {}\n", thread_count(), simd::active_target());
    for (const Timing& timing : timings) {
      rows.push_back({{"name", timing.name},
                      {"unit", timing.unit},
                      {"best", number(timing.best)},
                      {"median", number(timing.median)}});
      text += fmt::format("{:<44} {:>10.4g} {:<9} (median {:.4g})\n", timing.name, timing.best,
                          timing.unit, timing.median);
    }
    print_result(globals, "bench",
                 {{"threads", thread_count()}, {"target", simd::active_target()}, {"rows", rows}},
                 text);
  });
}

}  // namespace esscher::cli
