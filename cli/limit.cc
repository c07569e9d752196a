// esscher limit: attention under a measure, T[mu](z) = V m_a with a = U z, and the tilt behind it.
#include <fmt/format.h>

#include "cli/rows.h"
#include "cli/verbs.h"

namespace esscher::cli {
namespace {

struct LimitOptions {
  bool derivatives = false;
  std::int64_t queries = 8;
};

std::string table_text(const AnyMeasure& mu, const Json& document) {
  std::string out = fmt::format("{} measure in dimension {}, {} tokens\n", mu.name(), mu.dim(),
                                mu.cardinality().text());
  for (const Json& row : document.at("rows")) {
    out += fmt::format("\nz              {}\n", short_text(row.at("z")));
    out += fmt::format("output         {}\n", short_text(row.at("output")));
    out += fmt::format("output_linear  {}\n", short_text(row.at("output_linear")));
    out += fmt::format("tilted_mean    {}\n", short_text(row.at("tilted_mean")));
    out += fmt::format("log_mgf        {}\n", short_number(row.at("log_mgf")));
    out += fmt::format("tau2           {}\n", short_number(row.at("tau2")));
    if (row.contains("effective_sample_size")) {
      out += fmt::format("ESS            {}\n", short_number(row.at("effective_sample_size")));
    }
  }
  return out;
}

void run(const Globals& globals, const LimitOptions& options) {
  const Config config = globals.load_config();
  const Table root = config.root();
  const AnyMeasure mu = read_measure(root.table("measure"));
  const Attention attention = read_attention(root, mu.dim());
  const bool linear = attention_is_linear(root);
  const Matrix points = query_points(root, mu.dim(), options.queries, globals.seed);
  config.check_all_used();
  Json document{{"measure", mu.name()},
                {"dim", mu.dim()},
                {"cardinality", number(mu.cardinality())},
                {"kind", linear ? "linear" : "softmax"},
                {"engine", "exact"},
                {"rows", Json::array()}};
  for (Index i = 0; i < points.rows(); ++i) {
    document["rows"].push_back(
        query_row(mu, attention, points.row(i).transpose(), {linear, options.derivatives}));
  }
  print_result(globals, "limit", document, table_text(mu, document));
}

}  // namespace

void add_limit(CLI::App& app, Globals& globals) {
  CLI::App* verb = add_verb(
      app, globals, "limit", "Attention under a measure: the limit of an infinite prompt",
      "Reads [measure], [attention] (U, V or K, Q, V; identity unless given) and [query].\n"
      "tau2 is the variance of the score <U z, token>; exp(tau2) is the prompt length below which\n"
      "softmax is frozen on few tokens.\n"
      "Examples:\n"
      "  esscher limit --set measure.type=gaussian --set measure.dim=2 --set query.z=[1,0.5]\n"
      "  esscher limit --config exp.toml --set attention.U=0.5 --json\n"
      "  esscher limit --set measure.type=sphere --set measure.dim=3 --set query.type=gaussian \\\n"
      "                --set query.dim=3 --queries 4 --derivatives --json");
  const auto options = std::make_shared<LimitOptions>();
  verb->add_flag("--derivatives", options->derivatives,
                 "add the Jacobians of the output in z, U and V");
  verb->add_option("--queries", options->queries, "queries to draw if [query] is a measure")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000000}));
  verb->callback([&globals, options] { run(globals, *options); });
}

}  // namespace esscher::cli
