// esscher universal: the scalar functions of (L, tau) behind every Gaussian prompt.
#include "esscher/universal/universal.h"

#include <fmt/format.h>

#include "cli/verbs.h"
#include "esscher/base/estimate.h"
#include "esscher/base/number_text.h"

namespace esscher::cli {
namespace {

struct UniversalOptions {
  std::string length;
  double tau = 0;
};

void run_universal(const Globals& globals, const UniversalOptions& options) {
  const Length length = Length::parse(options.length);
  // At L = inf the softmax mean is the tilted mean itself.
  const Universal value = length.is_infinite()
                              ? Universal{.M1 = options.tau * options.tau, .M1_ratio = 1}
                              : universal(length.count(), options.tau);
  Json document{{"L", number(length)}};
  put(document, "tau", options.tau);
  put(document, "M1", value.M1);
  put(document, "M2c", value.M2c);
  put(document, "H", value.H);
  document["engine"] = name(Engine::exact);
  document["std_error"] = 0;
  put(document, "error", value.error);
  const std::string text =
      fmt::format("L    {}\ntau  {}\nM1   {}\nM2c  {}\nH    {}   (effective sample size {})\n",
                  length.text(), brief(options.tau, 12), brief(value.M1, 12), brief(value.M2c, 12),
                  brief(value.H, 12), brief(1 / value.H, 6));
  print_result(globals, "universal", document, text);
}

}  // namespace

void add_universal(const Command& app, Globals& globals) {
  const Command verb = add_verb(
      app, globals, "universal", "Exact scalar functions of a Gaussian prompt of length L",
      "For L scores s_l ~ N(0, tau^2) with softmax weights w and S = sum w s:\n"
      "  M1 = E[S],  M2c = E[(S - tau^2)^2],  H = E[sum w^2].  Cost does not grow with L.\n"
      "Examples:\n"
      "  esscher universal --length 1000 --tau 1.5\n"
      "  esscher universal --length 1e12 --tau 3 --json",
      {.config = false, .threads = false, .seed = false});
  const auto options = std::make_shared<UniversalOptions>();
  verb.option("--length", options->length, "prompt length: an integer, 1e6, or inf")
      .type_name("L")
      .required();
  verb.option("--tau", options->tau, "standard deviation of the scores, 0 to 600")
      .type_name("T")
      .required();
  verb.run([&globals, options] { run_universal(globals, *options); });
}

}  // namespace esscher::cli
