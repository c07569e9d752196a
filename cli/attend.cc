// esscher attend: attention on given tokens, next to the limit of a reference measure.
#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

#include "cli/attend_head.h"
#include "cli/attend_prompt.h"
#include "cli/reference.h"
#include "cli/rows.h"
#include "cli/verbs.h"
#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/measure/gaussian.h"

namespace esscher::cli {
namespace {

constexpr const char* kMixtureFit = "mixture-fit";

struct AttendOptions {
  std::string tokens;
  std::string reference;
  std::int64_t components = 1;
  RowRequest rows = {};
  std::string length;
};

AnyMeasure read_tokens(const Table& root) {
  const Table table = root.table("measure");
  AnyMeasure prompt = read_measure(table);
  if (prompt.as<Empirical>() == nullptr) table.fail("type", "\"empirical\": attend needs tokens");
  return prompt;
}

using Reference = AttendReference;

Reference read_reference(const Table& root, const AttendOptions& options, std::uint64_t seed,
                         const Empirical& tokens) {
  if (!root.has("reference")) {
    if (options.reference != kMixtureFit) return {gaussian_fit(tokens), "gaussian-fit"};
    return {mixture_fit(tokens, static_cast<Index>(options.components), seed), options.reference};
  }
  if (!options.reference.empty()) {
    root.fail_because("reference", "given beside --reference; give one of them");
  }
  const Table table = root.table("reference");
  AnyMeasure measure = read_measure(table);
  if (measure.dim() != tokens.dim()) {
    table.fail_table("dimension is " + std::to_string(measure.dim()) + ", the tokens have " +
                     std::to_string(tokens.dim()));
  }
  return {measure, "config"};
}

// One query on the tokens and under the reference.
struct AttendRow {
  QueryRow prompt;
  QueryRow limit;
  double error = 0;  // |output - limit output|
};

// NaN if an output is not finite.
double distance(const Vector& a, const Vector& b) {
  double sum = 0;
  for (Index i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a(i)) || !std::isfinite(b(i))) return std::nan("");
    sum = std::hypot(sum, a(i) - b(i));
  }
  return sum;
}

Json attend_json(const AttendRow& row) {
  Json out = query_json(row.prompt);
  out["limit"] = query_json(row.limit);
  put(out, "error", row.error);
  return out;
}

std::string attend_text(const AnyMeasure& prompt, const Reference& reference,
                        const std::vector<AttendRow>& rows) {
  std::string out =
      fmt::format("{} tokens in dimension {}, reference {} ({})\n", prompt.cardinality().text(),
                  prompt.dim(), reference.measure.name(), reference.origin);
  for (const AttendRow& row : rows) {
    out += fmt::format("\nz       {}\n", brief_vector(row.prompt.z));
    out += fmt::format("output  {}\n", brief_vector(row.prompt.output));
    out += fmt::format("limit   {}\n", brief_vector(row.limit.output));
    out += fmt::format("error   {}\n", brief(row.error, 6));
    out += fmt::format("tau2    {}   ESS {}\n", brief(row.prompt.tau2, 6),
                       brief(row.prompt.effective_sample_size.value(), 6));
  }
  return out;
}

void run_attend(const Globals& globals, const AttendOptions& options) {
  Config config = globals.load_config();
  set_tokens(config, options.tokens);
  const Table root = config.root();
  if (root.has("prompt")) {
    attend_prompt(globals, config, {.length = options.length, .rows = options.rows},
                  [&](const Empirical& tokens) {
                    return read_reference(root, options, globals.seed, tokens);
                  });
    return;
  }
  if (!options.length.empty()) {
    throw ConfigError("--length is the length of a [prompt] with groups; there is no [prompt]");
  }
  const AnyMeasure prompt = read_tokens(root);
  const Reference reference = read_reference(root, options, globals.seed, *prompt.as<Empirical>());
  const AskedRows asked = asked_rows(root, prompt.dim(), options.rows, globals.seed);
  config.check_all_used();
  std::vector<AttendRow> rows;
  Json objects = Json::array();
  double sum = 0;
  for (Index i = 0; i < asked.points.rows(); ++i) {
    AttendRow row{.prompt = asked.row(prompt, i), .limit = asked.row(reference.measure, i)};
    row.error = distance(row.prompt.output, row.limit.output);
    sum += row.error * row.error;
    objects.push_back(attend_json(row));
    rows.push_back(std::move(row));
  }
  Json document{{"dim", prompt.dim()},
                {"cardinality", number(prompt.cardinality())},
                {"kind", asked.kind()},
                {"engine", "direct"},
                {"rows", std::move(objects)},
                {"limit", {{"measure", reference.measure.name()}, {"origin", reference.origin}}}};
  put(document, "error", std::sqrt(sum / static_cast<double>(asked.points.rows())));
  print_result(globals, "attend", document, attend_text(prompt, reference, rows));
}

}  // namespace

void add_attend(const Command& app, Globals& globals) {
  const Command verb = add_verb(
      app, globals, "attend", "Attention on given tokens, next to the limit of a measure",
      "Tokens: --tokens FILE (.npy .csv .npz#name .safetensors#tensor) or [measure] type =\n"
      "\"empirical\". Each row holds the output on the tokens, the same under the reference\n"
      "(\"limit\") and the Euclidean distance of the two outputs (\"error\"); the document's\n"
      "\"error\" is the root mean square over rows. The reference is the table [reference], or\n"
      "else the Gaussian with the tokens' mean and covariance, or a mixture fitted to them.\n"
      "A [prompt] adds given tokens, the query's own token, sinks and position biases. Its groups\n"
      "are averaged over: then a row has the expected output, its variance over prompts and the\n"
      "expected weight of every part, beside the limit of the prompt.\n"
      "Examples:\n"
      "  esscher attend --tokens tokens.npy --set query.z=[1,0.5]\n"
      "  esscher attend --tokens 'model.safetensors#L0.H1.K' --set query.file=q.csv --json\n"
      "  esscher attend --tokens tokens.npy --set query.z=[1,0.5] --set prompt.sink_logits=[2]\n"
      "  esscher attend --head 'model.safetensors#L0.H1' --surrogate surrogates.safetensors "
      "--components 4\n"
      "  esscher attend --tokens tokens.npy --set query.z=[1,0.5] --set reference.type=rademacher "
      "--set reference.dim=2");
  const auto options = std::make_shared<AttendOptions>();
  add_tokens(verb, options->tokens);
  verb.option("--reference", options->reference,
              "gaussian-fit, unless there is a table [reference]; mixture-fit has --components")
      .type_name("NAME")
      .one_of({"gaussian-fit", kMixtureFit});
  add_row_options(verb, options->rows);
  verb.option("--length", options->length, "tokens of a [prompt] whose groups have shares")
      .type_name("L");
  const auto head = std::make_shared<AttendHeadOptions>();
  const Option surrogate =
      verb.option("--surrogate", head->surrogate, "surrogates from `esscher heads --export`")
          .type_name("FILE");
  verb.option("--head", head->head, "a head on its own queries, next to its surrogate")
      .type_name("FILE#NAME")
      .needs(surrogate)
      .excludes("--tokens");
  verb.option("--components", head->components, "components of the surrogate or of mixture-fit")
      .type_name("K")
      .positive();
  verb.run([&globals, options, head] {
    if (head->head.empty()) {
      options->components = head->components;
      run_attend(globals, *options);
    } else {
      attend_head(globals, *head);
    }
  });
}

}  // namespace esscher::cli
