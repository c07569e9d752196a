// esscher universal: functions of the scores alone, for Gaussian scores of deviation tau or for the
// scores of any prompt that has score laws.
#include "esscher/universal/universal.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "cli/verbs.h"
#include "esscher/base/error.h"
#include "esscher/base/estimate.h"
#include "esscher/base/number_text.h"
#include "esscher/config/measure.h"
#include "esscher/config/prompt.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/prompt/averages.h"
#include "esscher/prompt/exact_prompt.h"
#include "esscher/scaling/sampled_weights.h"
#include "esscher/universal/free_energy.h"
#include "esscher/universal/needle.h"

namespace esscher::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct UniversalOptions {
  std::string length;
  double tau = 0;
  double needle = 0;
  bool has_tau = false, has_needle = false;
  std::int64_t draws = 1001;
};

// What is printed about one prompt.
struct UniversalRow {
  double tau = 0;  // NaN where scores have no finite deviation
  ScoreFunctions scores;
  std::optional<double> needle = {};
  std::optional<Estimate> median = {};  // of sum omega^2 over prompts
};

// Scores of plain Gaussian tokens are drawn at any length; other prompts as whole tokens, and only
// where these are not too many.
std::optional<Estimate> median_of(const UniversalOptions& options, std::uint64_t seed,
                                  const Prompt& prompt, const Attention& attention, const Vector& z,
                                  Length L) {
  const int draws = static_cast<int>(options.draws);
  if (draws == 0 || L.is_infinite()) return std::nullopt;
  const double n = static_cast<double>(L.count());
  const auto law = prompt.is_plain() ? gaussian_law(prompt.groups.front().mu) : std::nullopt;
  const double tau = law ? score_tau(*law, attention.tilt(z)) : 0;
  if (tau > 0) {
    return median_weight_square(ScoreModel::gaussian(tau), 1, n, draws, Stream(seed));
  }
  if (n * draws > kMaxDrawnTokens) return std::nullopt;
  return median_weights2(prompt, attention, z, L.count(), draws, Stream(seed));
}

// At L = inf the softmax mean is the tilted mean itself.
UniversalRow gaussian_row(const Globals& globals, const UniversalOptions& options, Length L) {
  UniversalRow row{.tau = options.tau, .scores = {}};
  const double tau2 = options.tau * options.tau;
  if (L.is_infinite()) {
    if (!(options.tau >= 0 && options.tau <= kMaxTau)) (void)universal(1, options.tau);
    row.scores = {.M1 = tau2, .free_energy = kInfinity, .entropy = kInfinity};
    if (options.has_needle) row.needle = 0;
    return row;
  }
  const Universal u = universal(L.count(), options.tau);
  const double n = static_cast<double>(L.count());
  row.scores = {.H = u.H,
                .M1 = u.M1,
                .M2c = u.M2c,
                .free_energy = free_energy(n, options.tau).F,
                .entropy = weight_entropy(n, options.tau),
                .error = u.error};
  if (options.has_needle) row.needle = needle_weight(n, options.tau, options.needle);
  if (options.tau == 0) row.median = Estimate{.value = 1 / n};
  if (options.draws > 0 && options.tau > 0) {
    row.median = median_weight_square(ScoreModel::gaussian(options.tau), 1, n,
                                      static_cast<int>(options.draws), Stream(globals.seed));
  }
  return row;
}

Prompt prompt_of(const Table& root) {
  if (std::optional<Prompt> prompt = read_prompt(root)) return *std::move(prompt);
  return Prompt::plain(read_measure(root.table("measure")));
}

UniversalRow prompt_row(const Globals& globals, const UniversalOptions& options, Length L) {
  const Config config = globals.load_config();
  const Table root = config.root();
  Prompt prompt = prompt_of(root);
  const Attention attention = read_attention(root, prompt.dim());
  const Query query = read_query(root, prompt.dim());
  if (query.points.rows() != 1) {
    root.table("query").fail_table("universal is about one query, expected z = [..]");
  }
  config.check_all_used();
  const Vector z = query.points.row(0).transpose(), a = attention.tilt(z);
  if (L.is_infinite() && no_limit_reason(prompt).empty()) {
    throw ArgumentError(
        "universal: --length inf is for prompts without a limit, whose functions saturate; give a "
        "number, or see `esscher limit`");
  }
  UniversalRow row{.tau = std::numeric_limits<double>::quiet_NaN(), .scores = {}};
  if (!prompt.groups.empty()) {
    const AnyMeasure mu = limit_measure(prompt).value_or(prompt.groups.front().mu);
    const Vector m = mu.mean();
    row.tau = std::sqrt(std::max(0.0, a.dot(mu.second_moment() * a) - std::pow(a.dot(m), 2)));
  }
  row.scores = ExactPrompt(prompt, attention, z).score_functions(L);
  row.median = median_of(options, globals.seed, prompt, attention, z, L);
  if (options.has_needle) {  // a logit of its own: its value is not read
    prompt.sink_logits.push_back(options.needle);
    const Vector weights = ExactPrompt(prompt, attention, z).weights(L);
    row.needle = weights[weights.size() - 1];
  }
  return row;
}

Json document_of(const UniversalRow& row, Length L) {
  const ScoreFunctions& s = row.scores;
  Json document{{"L", number(L)}};
  put(document, "tau", row.tau);
  put(document, "M1", s.M1);
  put(document, "M2c", s.M2c);
  put(document, "H", s.H);
  document["H_median"] = row.median ? Json(row.median->value) : Json();
  document["H_median_error"] = row.median ? Json(row.median->std_error) : Json();
  put(document, "free_energy", s.free_energy);
  put(document, "entropy", s.entropy);
  document["needle"] = row.needle ? Json(*row.needle) : Json();
  document["engine"] = name(Engine::exact);
  document["std_error"] = 0;
  put(document, "error", s.error);
  return document;
}

std::string text_of(const UniversalRow& row, Length L) {
  const ScoreFunctions& s = row.scores;
  std::string out = fmt::format(
      "L            {}\ntau          {}\nM1           {}\nM2c          {}\nH            {}   "
      "(effective sample size {})\nfree energy  {}\nentropy      {}\n",
      L.text(), brief(row.tau, 12), brief(s.M1, 12), brief(s.M2c, 12), brief(s.H, 12),
      brief(1 / s.H, 6), brief(s.free_energy, 12), brief(s.entropy, 12));
  if (row.median) {
    out += fmt::format("median of H  {}", brief(row.median->value, 4));
    if (row.median->n > 0) {
      out += fmt::format("   (standard error {}, {} prompts were drawn)",
                         brief(row.median->std_error, 2), row.median->n);
    }
    out += "\n";
  }
  if (row.needle) out += fmt::format("needle       {}\n", brief(*row.needle, 12));
  return out;
}

void run_universal(const Globals& globals, const UniversalOptions& options) {
  const Length L = Length::parse(options.length);
  const UniversalRow row =
      options.has_tau ? gaussian_row(globals, options, L) : prompt_row(globals, options, L);
  print_result(globals, "universal", document_of(row, L), text_of(row, L));
}

}  // namespace

void add_universal(const Command& app, Globals& globals) {
  const Command verb = add_verb(
      app, globals, "universal", "Exact scalar functions of the scores of a prompt of length L",
      "For L scores s_l ~ N(0, tau^2) with softmax weights w and S = sum w s:\n"
      "  M1 = E[S],  M2c = E[(S - tau^2)^2],  H = E[sum w^2],  free energy = E[log sum e^s],\n"
      "  entropy = E[-sum w log w],  needle = E[weight of one more token of the given score].\n"
      "Without --tau the scores are those of [measure], [attention], [query] and [prompt].\n"
      "H is a mean over prompts, which rare prompts may carry; its median is drawn, with an "
      "error.\n"
      "The cost of the others does not grow with L.\n"
      "Examples:\n"
      "  esscher universal --length 1000 --tau 1.5\n"
      "  esscher universal --length 1e12 --tau 3 --needle 30 --json\n"
      "  esscher universal --length 500 --set measure.type=sphere --set measure.dim=3 \\\n"
      "                    --set query.z=[3,0,0]",
      {});
  const auto options = std::make_shared<UniversalOptions>();
  verb.option("--length", options->length, "prompt length: an integer, 1e6, or inf")
      .type_name("L")
      .required();
  const Option tau =
      verb.option("--tau", options->tau, "standard deviation of Gaussian scores, 0 to 600")
          .type_name("T");
  const Option needle =
      verb.option("--needle", options->needle, "score of a given token whose weight is asked for")
          .type_name("SCORE");
  verb.option("--draws", options->draws, "prompts drawn for the median of H, 0 for none")
      .type_name("N")
      .between(std::int64_t{0}, std::int64_t{1000000});
  verb.run([&globals, options, tau, needle] {
    options->has_tau = tau.given();
    options->has_needle = needle.given();
    run_universal(globals, *options);
  });
}

}  // namespace esscher::cli
