// The same command on every instruction set of this machine. What docs/faq.md promises is compared
// here: equal documents where no kernel adds numbers, and stated tolerances elsewhere.
#include "esscher/simd/targets.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "tests/cli/program.h"

namespace esscher {
namespace {

// The largest |a - b| relative to the larger of both, or relative to the scale of the list they
// stand in: an entry of a matrix that is nearly zero is rounded like its neighbours. Everything but
// numbers must be equal.
double gap(const Json& a, const Json& b);

double scale_of(const Json& list) {
  double scale = 0;
  for (const Json& x : list) {
    scale = std::max(scale, x.is_array()    ? scale_of(x)
                            : x.is_number() ? std::abs(x.get<double>())
                                            : 0);
  }
  return scale;
}

double list_gap(const Json& a, const Json& b, double scale) {
  double out = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].is_array()) {
      out = std::max(out, list_gap(a[i], b[i], scale));
    } else if (a[i].is_number_float()) {
      out = std::max(out, std::abs(a[i].get<double>() - b[i].get<double>()) / scale);
    } else {
      out = std::max(out, gap(a[i], b[i]));
    }
  }
  return out;
}

double gap(const Json& a, const Json& b) {
  if (a == b) return 0;
  if (a.is_number() && b.is_number()) {
    const double x = a.get<double>(), y = b.get<double>();
    return std::abs(x - y) / std::max(std::abs(x), std::abs(y));
  }
  if (a.is_array() && b.is_array() && a.size() == b.size()) return list_gap(a, b, scale_of(a));
  double out = a.is_object() && b.is_object() && a.size() == b.size() ? 0 : HUGE_VAL;
  for (const auto& [key, value] : a.items()) {
    if (!b.contains(key)) return HUGE_VAL;
    out = std::max(out, gap(value, b.at(key)));
  }
  return out;
}

class Targets : public Program {
 protected:
  Targets() {
    write_text(file("rate.toml"),
               "[measure]\ntype = \"gaussian\"\ndim = 2\ncov = 0.25\n[attention]\nU = 1.0\n"
               "[sweep]\nlengths = [10, 300]\nqueries = 16\nreplicates = 4\n");
  }
  ~Targets() override { ::unsetenv("ESSCHER_TARGET"); }

  // The largest gap between the best instruction set and any other one, of the whole document or of
  // one key of it.
  double largest_gap(const std::string& arguments, const std::string& key = "") {
    const std::vector<std::string> names = simd::supported_targets();
    const auto part = [&](const std::string& target) {
      const Json all = document(arguments, target);
      return key.empty() ? all : all.at(key);
    };
    const Json best = part(names.front());
    double out = 0;
    for (std::size_t i = 1; i < names.size(); ++i) out = std::max(out, gap(best, part(names[i])));
    return out;
  }
  std::string rate() { return " --config " + file("rate.toml").string(); }

 private:
  Json document(const std::string& arguments, const std::string& target) {
    ::setenv("ESSCHER_TARGET", target.c_str(), 1);
    const Outcome outcome = run(arguments + " --json --quiet");
    EXPECT_EQ(outcome.code, 0) << target << outcome.err;
    return outcome.json();
  }
};

TEST_F(Targets, FormulasHaveTheSameBits) {
  EXPECT_EQ(largest_gap("universal --tau 1.5 --length 100"), 0);
  EXPECT_EQ(largest_gap("concentration --seed 1" + rate()), 0);
  EXPECT_EQ(largest_gap("length --eps 1e-3" + rate()), 0);
  EXPECT_EQ(largest_gap("icl risk --set task.dim=2 --length 10,inf"), 0);
}

TEST_F(Targets, TokensAndScoresDifferByRounding) {
  EXPECT_LT(largest_gap("concentration --seed 1 --set sweep.engine=sampled" + rate()), 1e-12);
  EXPECT_LT(largest_gap("concentration --seed 1 --set sweep.engine=direct" + rate()), 1e-12);
}

// The training kernels keep scores and weights in single precision, and a run repeats its rounding
// at every step.
TEST_F(Targets, TrainingDiffersBySinglePrecision) {
  const std::string train =
      "icl train --seed 3 --length 50 --set task.dim=2 --set train.steps=200 --set train.batch=32 "
      "--set train.checkpoints=2 --set train.optimizer=adam";
  EXPECT_LT(largest_gap(train), 1e-5);
  EXPECT_LT(largest_gap(train + " --set train.gradient=exact"), 1e-12);
}

// Several heads and layers on mixtures draw whole tokens, in kernels of their own. The error of the
// risk at the end of a layer is rounding alone, so that parameters are compared.
TEST_F(Targets, SeveralHeadsAndLayersDifferBySinglePrecision) {
  const std::string steps =
      " --seed 3 --length 50 --set train.steps=100 --set train.batch=32 --set train.checkpoints=2 "
      "--set train.optimizer=adam";
  EXPECT_LT(largest_gap("icl train --set task.dim=2 --set model.heads=2" + steps), 1e-5);
  EXPECT_LT(largest_gap("icl train --set task.type=denoising --set task.dim=1 "
                        "--set task.means=[[1],[-1]] --set task.gamma=0.5 --set task.xi=0.5" +
                            steps,
                        "parameters"),
            1e-5);
}

// Scores of real keys, mixtures fitted to them, windows and causes: texts and counts are equal, too.
// The test against Gaussian keys takes square roots of variances that may be rounding, hence 1e-7.
TEST_F(Targets, HeadsDifferByRounding) {
  const std::string sample = testing::source_dir() + "/tests/data/sample-heads.safetensors";
  EXPECT_LT(largest_gap("heads " + sample + " --no-causal --scale 0.1 --components 3 --at 100"),
            1e-7);
}

}  // namespace
}  // namespace esscher
