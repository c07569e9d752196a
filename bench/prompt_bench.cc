// The exact engine on prompts of every kind of law: one length and one query, from the law to the mean
// square error of the output, V = I. Argument: log10 of the length. The defect of the sum of weights is
// checked before the clock starts.
#include <benchmark/benchmark.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "esscher/measure/affine.h"
#include "esscher/measure/categorical.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/elliptical.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/single_index.h"
#include "esscher/measure/sphere.h"
#include "esscher/measure/student.h"
#include "esscher/measure/sum.h"
#include "esscher/prompt/exact_prompt.h"

namespace {

using namespace esscher;

std::vector<std::pair<std::string, AnyMeasure>> laws() {
  const Matrix I = Matrix::Identity(4, 4), I3 = Matrix::Identity(3, 3);
  const Matrix mixing = 0.5 * Matrix::Ones(4, 16) + Matrix::Identity(4, 16);
  return {
      {"gaussian", Gaussian(I)},
      {"mixture", Mixture(Vector{{0.3, 0.7}}, {Gaussian(Vector::Ones(4), I), Gaussian(0.5 * I)})},
      {"sphere", Sphere(4, 2)},
      {"ball", Ball(4, 2)},
      {"rademacher", Rademacher(4)},
      {"16 signs mixed", Affine(Vector::Zero(4), mixing, Rademacher(16))},
      {"uniform", Uniform(4)},
      {"laplace b = 0.3", Laplace(4, 0.3)},
      {"laplace b = 0.6", Laplace(4, 0.6)},
      {"3000 tokens", Empirical(Gaussian(I).sample(Stream(1), 3000).tokens())},
      {"elliptical", Elliptical(I, gamma_scales(2, 3))},
      {"single_index tanh", SingleIndex(I3, Vector::Ones(3), Link(LinkName::tanh), 0.1)},
      {"single_index relu", SingleIndex(I3, Vector::Ones(3), Link(LinkName::relu), 0.1)},
      {"sphere with noise", Sum({Sphere(4, 2), Gaussian(0.1 * I)})},
      {"student nu = 2.5", Student(2.5, I)},
      {"student nu = 5", Student(5, I)},
      {"student nu = 30", Student(30, I)}};
}

void one_query(benchmark::State& state, const AnyMeasure& mu) {
  const Attention attention = Attention::from_uv(Matrix::Identity(4, 4), Matrix::Identity(4, 4));
  const Vector z{{0.9, -0.5, 0.3, 0.7}};
  const Length L(std::llround(std::pow(10.0, static_cast<double>(state.range(0)))));
  const Prompt prompt = Prompt::plain(mu);
  if (!(ExactPrompt(prompt, attention, z).score_functions(L).error < 1e-10)) {
    state.SkipWithError("weights do not sum up to 1");
  }
  for (auto _ : state) {
    ExactPrompt exact(prompt, attention, z);
    benchmark::DoNotOptimize(exact.variance(L));
  }
}

const bool registered = [] {
  for (const auto& [name, mu] : laws()) {
    benchmark::RegisterBenchmark(("one query, " + name).c_str(),
                                 [mu = mu](benchmark::State& state) { one_query(state, mu); })
        ->Arg(1)
        ->Arg(3)
        ->Arg(9)
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
