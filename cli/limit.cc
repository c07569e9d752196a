// esscher limit: attention under a measure, T[mu](z) = V m_a with a = U z, and the tilt behind it.
#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "cli/rows.h"
#include "cli/verbs.h"
#include "esscher/base/number_text.h"
#include "esscher/config/prompt.h"
#include "esscher/prompt/exact_prompt.h"

namespace esscher::cli {
namespace {

std::string limit_text(const AnyMeasure& mu, const std::vector<QueryRow>& rows) {
  std::string out = fmt::format("{} measure in dimension {}, {} tokens\n", mu.name(), mu.dim(),
                                mu.cardinality().text());
  for (const QueryRow& row : rows) {
    out += fmt::format("\nz              {}\n", brief_vector(row.z));
    out += fmt::format("output         {}\n", brief_vector(row.output));
    out += fmt::format("output_linear  {}\n", brief_vector(row.output_linear));
    out += fmt::format("tilted_mean    {}\n", brief_vector(row.tilted_mean));
    out += fmt::format("log_mgf        {}\n", brief(row.log_mgf, 6));
    out += fmt::format("tau2           {}\n", brief(row.tau2, 6));
    if (row.effective_sample_size) {
      out += fmt::format("ESS            {}\n", brief(*row.effective_sample_size, 6));
    }
  }
  return out;
}

// A prompt without a limit: E[T_hat] as L grows, and how many tokens carry it.
void print_saturation(const Globals& globals, const Config& config, const Prompt& prompt,
                      Index queries) {
  const Attention attention = read_attention(config.root(), prompt.dim());
  const Matrix points = query_points(config.root(), prompt.dim(), queries, globals.seed);
  config.check_all_used();
  const std::string reason = no_limit_reason(prompt);
  std::string text = "no limit: " + reason + ". The expected output saturates at\n";
  Json rows = Json::array();
  for (Index i = 0; i < points.rows(); ++i) {
    ExactPrompt exact(prompt, attention, points.row(i).transpose());
    const Vector output = exact.expected_output(Length::infinity());
    Json row = Json::object();
    row["z"] = json_vector(points.row(i).transpose());
    row["saturation"] = json_vector(output);
    text += fmt::format("\nz           {}\nsaturation  {}\n",
                        brief_vector(points.row(i).transpose()), brief_vector(output));
    rows.push_back(std::move(row));
  }
  const Json document{{"limit", nullptr},
                      {"reason", reason},
                      {"dim", prompt.dim()},
                      {"engine", "exact"},
                      {"rows", std::move(rows)}};
  print_result(globals, "limit", document, text);
}

void run_limit(const Globals& globals, const RowRequest& request) {
  const Config config = globals.load_config();
  const Table root = config.root();
  const std::optional<Prompt> prompt = read_prompt(root);
  if (prompt && !no_limit_reason(*prompt).empty()) {
    print_saturation(globals, config, *prompt, request.queries);
    return;
  }
  const AnyMeasure mu = prompt ? *limit_measure(*prompt) : read_measure(root.table("measure"));
  const AskedRows asked = asked_rows(root, mu.dim(), request, globals.seed);
  config.check_all_used();
  std::vector<QueryRow> rows;
  Json objects = Json::array();
  for (Index i = 0; i < asked.points.rows(); ++i) {
    rows.push_back(asked.row(mu, i));
    objects.push_back(query_json(rows.back()));
  }
  const Json document{
      {"measure", mu.name()}, {"dim", mu.dim()},   {"cardinality", number(mu.cardinality())},
      {"kind", asked.kind()}, {"engine", "exact"}, {"rows", std::move(objects)}};
  print_result(globals, "limit", document, limit_text(mu, rows));
}

}  // namespace

void add_limit(const Command& app, Globals& globals) {
  const Command verb = add_verb(
      app, globals, "limit", "Attention under a measure: the limit of an infinite prompt",
      "Reads [measure], [prompt], [attention] (U, V or K, Q, V; identity unless given), [query].\n"
      "The limit of a [prompt] is that of its groups by share; ALiBi and windows have none, and\n"
      "the value where the expected output saturates is given instead.\n"
      "tau2 is the variance of the score <U z, token>; exp(tau2) is the prompt length below which\n"
      "softmax is frozen on few tokens.\n"
      "Examples:\n"
      "  esscher limit --set measure.type=gaussian --set measure.dim=2 --set query.z=[1,0.5]\n"
      "  esscher limit --config exp.toml --set attention.U=0.5 --json\n"
      "  esscher limit --set measure.type=sphere --set measure.dim=3 --set query.type=gaussian \\\n"
      "                --set query.dim=3 --queries 4 --derivatives --json");
  const auto request = std::make_shared<RowRequest>();
  add_row_options(verb, *request);
  verb.run([&globals, request] { run_limit(globals, *request); });
}

}  // namespace esscher::cli
