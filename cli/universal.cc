// esscher universal: the scalar functions of (L, tau) behind every Gaussian prompt.
#include "esscher/universal/universal.h"

#include <fmt/format.h>

#include "cli/verbs.h"
#include "esscher/base/error.h"

namespace esscher::cli {
namespace {

struct UniversalOptions {
  std::string length;
  double tau = 0;
};

void run(const Globals& globals, const UniversalOptions& options) {
  const Length length = Length::parse(options.length);
  // At L = inf the softmax mean is the tilted mean itself.
  const Universal value = length.is_infinite()
                              ? Universal{.M1 = options.tau * options.tau, .M1_ratio = 1}
                              : universal(length.count(), options.tau);
  const Json document{{"L", number(length)},    {"tau", number(options.tau)},
                      {"M1", number(value.M1)}, {"M2c", number(value.M2c)},
                      {"H", number(value.H)},   {"engine", "exact"},
                      {"std_error", 0},         {"error", number(value.error)}};
  const std::string text = fmt::format(
      "L    {}\ntau  {:.12g}\nM1   {:.12g}\nM2c  {:.12g}\nH    {:.12g}   (effective sample size "
      "{:.6g})\n",
      length.text(), options.tau, value.M1, value.M2c, value.H, 1 / value.H);
  print_result(globals, "universal", document, text);
}

}  // namespace

void add_universal(CLI::App& app, Globals& globals) {
  CLI::App* verb = add_verb(
      app, globals, "universal", "Exact scalar functions of a Gaussian prompt of length L",
      "For L scores s_l ~ N(0, tau^2) with softmax weights w and S = sum w s:\n"
      "  M1 = E[S],  M2c = E[(S - tau^2)^2],  H = E[sum w^2].  Cost does not grow with L.\n"
      "Examples:\n"
      "  esscher universal --length 1000 --tau 1.5\n"
      "  esscher universal --length 1e12 --tau 3 --json");
  const auto options = std::make_shared<UniversalOptions>();
  verb->add_option("--length", options->length, "prompt length: an integer, 1e6, or inf")
      ->type_name("L")
      ->required();
  verb->add_option("--tau", options->tau, "standard deviation of the scores, 0 to 600")
      ->type_name("T")
      ->required();
  verb->callback([&globals, options] { run(globals, *options); });
}

}  // namespace esscher::cli
