#include "cli/attend_prompt.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "cli/rows.h"
#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/config/prompt.h"
#include "esscher/prompt/averages.h"
#include "esscher/prompt/exact_prompt.h"

namespace esscher::cli {
namespace {

// The prompt of a configuration, with tokens of [measure] as they are.
struct AttendedPrompt {
  Prompt prompt;
  Index own = 0;  // tokens of prompt.given; those of [measure] follow
  std::int64_t L = 0;

  [[nodiscard]] bool is_random() const { return !prompt.groups.empty(); }
  [[nodiscard]] Index tokens() const { return prompt.given.rows() - own; }
};

// [measure] is the last group (config/prompt.h).
AttendedPrompt read_attended(const Table& root, const std::string& length) {
  AttendedPrompt out{.prompt = *read_prompt(root)};
  out.own = out.prompt.given.rows();
  const Empirical* tokens =
      root.has("measure") ? out.prompt.groups.back().mu.as<Empirical>() : nullptr;
  if (tokens != nullptr) {
    if ((tokens->weights().array() != tokens->weights()(0)).any()) {
      root.table("measure").fail_table("tokens with weights have no place in a [prompt]");
    }
    Matrix all(out.own + tokens->size(), tokens->dim());
    if (out.own > 0) all.topRows(out.own) = out.prompt.given;
    all.bottomRows(tokens->size()) = tokens->tokens();
    out.prompt.given = std::move(all);
    out.prompt.groups.pop_back();
  }
  bool shares = false;
  for (const PromptGroup& group : out.prompt.groups) shares = shares || !group.count;
  if (length.empty() && shares) {
    throw ConfigError(
        "prompt.groups have shares: give --length, the number of tokens of the prompt");
  }
  const Length L = length.empty() ? Length(out.prompt.fixed_tokens()) : Length::parse(length);
  if (L.is_infinite()) throw ConfigError("--length is inf, expected a number; see `esscher limit`");
  out.L = L.count();
  (void)group_counts(out.prompt, out.L);
  return out;
}

// Weights by name; the tokens of [measure] are one part, in their place.
std::vector<std::pair<std::string, double>> named_weights(const AttendedPrompt& at,
                                                          const Vector& weights) {
  const std::vector<std::string> names = part_names(at.prompt);
  std::vector<std::pair<std::string, double>> out;
  for (Index i = 0; i < weights.size(); ++i) {
    if (i >= at.own && i < at.own + at.tokens()) {
      if (i == at.own) out.emplace_back("empirical", 0.0);
      out.back().second += weights[i];
    } else {
      out.emplace_back(names[static_cast<std::size_t>(i)], weights[i]);
    }
  }
  return out;
}

// One query: what the prompt does on average, and what it is compared with.
struct PromptRow {
  PromptAverages at;
  std::optional<QueryRow> given = {};  // where no token is drawn
  std::optional<Vector> limit = {};
  std::string no_limit = {};  // why there is no number to compare with
};

PromptRow given_row(const AttendedPrompt& at, const Attention& attention, const Vector& z,
                    bool derivatives) {
  const DrawnPrompt drawn = draw_prompt(at.prompt, z, at.L, Stream(0));
  const Vector a = attention.tilt(z), omega = drawn.softmax(a);
  PromptRow row;
  row.given = query_row(drawn.measure(a), attention, z, {.derivatives = derivatives});
  row.at.output = row.given->output;
  row.at.output_error = Vector::Zero(attention.output_dim());
  row.at.weights2 = omega.squaredNorm();
  row.at.weights = Vector::Zero(static_cast<Index>(part_names(at.prompt).size()));
  row.at.engine = Engine::direct;
  for (Index i = 0; i < omega.size(); ++i) {
    row.at.weights[static_cast<Index>(drawn.part[static_cast<std::size_t>(i)])] += omega[i];
  }
  return row;
}

// The limit of the reference, of the prompt, or the value at which it saturates.
void add_limit(PromptRow& row, const AttendedPrompt& at, const Attention& attention,
               const Vector& z, const std::optional<AttendReference>& reference) {
  try {
    row.limit = reference
                    ? attention(reference->measure, z)
                    : ExactPrompt(at.prompt, attention, z).expected_output(Length::infinity());
  } catch (const DomainError& error) {
    row.no_limit = error.what();
  } catch (const CapabilityError& error) {
    row.no_limit = error.what();
  }
}

Json row_document(const AttendedPrompt& at, const Vector& z, const PromptRow& row) {
  Json out{{"z", json_vector(z)},
           {"output", json_vector(row.at.output)},
           {"std_error", json_vector(row.at.output_error)},
           {"variance", number(row.at.variance)},
           {"effective_sample_size", number(1 / row.at.weights2)},
           {"weights", Json::array()}};
  for (const auto& [name, weight] : named_weights(at, row.at.weights)) {
    out["weights"].push_back({{"group", name}, {"mean", number(weight)}});
  }
  if (row.given && row.given->jacobian_z) {
    const Json all = query_json(*row.given);
    for (const char* key : {"jacobian_z", "jacobian_U", "jacobian_V"}) out[key] = all.at(key);
  }
  out["limit"] = row.limit ? Json{{"output", json_vector(*row.limit)}} : Json();
  if (row.limit) {
    put(out, "error", (row.at.output - *row.limit).norm());
  } else {
    out["error"] = nullptr;
    out["reason"] = row.no_limit;
  }
  return out;
}

std::string row_text(const AttendedPrompt& at, const Vector& z, const PromptRow& row) {
  std::string out =
      fmt::format("\nz        {}\noutput   {}\n", brief_vector(z), brief_vector(row.at.output));
  if (row.at.output_error.cwiseAbs().maxCoeff() > 0) {
    out += fmt::format("         standard errors {}\n", brief_vector(row.at.output_error));
  }
  if (at.is_random()) {
    out += fmt::format("spread   {} (root of the variance over prompts)\n",
                       brief(std::sqrt(row.at.variance), 6));
  }
  out += row.limit ? fmt::format("limit    {}\nerror    {}\n", brief_vector(*row.limit),
                                 brief((row.at.output - *row.limit).norm(), 6))
                   : "limit    none: " + row.no_limit + "\n";
  out += fmt::format("ESS      {}\nweights  ", brief(1 / row.at.weights2, 6));
  constexpr std::size_t kShown = 8;
  const auto weights = named_weights(at, row.at.weights);
  for (std::size_t k = 0; k < std::min(weights.size(), kShown); ++k) {
    out += fmt::format("{}{} {}", k > 0 ? ", " : "", weights[k].first, brief(weights[k].second, 4));
  }
  return out + (weights.size() > kShown ? ", ...\n" : "\n");
}

std::string limit_origin(const AttendedPrompt& at,
                         const std::optional<AttendReference>& reference) {
  if (reference) return reference->origin;
  return no_limit_reason(at.prompt).empty() ? "prompt" : "saturation";
}

void check_request(const Table& root, const AttendedPrompt& at, bool derivatives) {
  if (attention_is_linear(root)) {
    root.table("attention").fail("kind", "\"softmax\": a [prompt] weighs its tokens by softmax");
  }
  if (derivatives && (at.is_random() || at.prompt.include_query)) {
    throw ConfigError(
        "--derivatives are those of given tokens; leave prompt.groups and prompt.include_query "
        "away");
  }
}

}  // namespace

void attend_prompt(const Globals& globals, const Config& config, const AttendPromptOptions& options,
                   const FitReference& fit) {
  const Table root = config.root();
  const AttendedPrompt at = read_attended(root, options.length);
  const Index d = at.prompt.dim();
  const Attention attention = read_attention(root, d);
  check_request(root, at, options.rows.derivatives);
  const Matrix points = query_points(root, d, options.rows.queries, globals.seed);
  std::optional<AttendReference> reference;
  if ((!at.is_random() && at.prompt.given.rows() > 0) || root.has("reference")) {
    reference = fit(Empirical(at.prompt.given.rows() > 0 ? at.prompt.given : Matrix::Zero(1, d)));
  }
  config.check_all_used();
  Json rows = Json::array();
  Engine engine = Engine::direct;
  std::string text;
  for (Index i = 0; i < points.rows(); ++i) {
    const Vector z = points.row(i).transpose();
    PromptRow row;
    if (at.is_random()) {
      const Stream own = Stream(globals.seed).split(static_cast<std::uint64_t>(i));
      row.at = prompt_averages(at.prompt, attention, z, at.L, {.stream = own});
    } else {
      row = given_row(at, attention, z, options.rows.derivatives);
    }
    add_limit(row, at, attention, z, reference);
    engine = row.at.engine;
    rows.push_back(row_document(at, z, row));
    text += row_text(at, z, row);
  }
  const std::string origin = limit_origin(at, reference);
  const std::string what = at.is_random() ? "averages over prompts" : "attention";
  const Json document{{"dim", d},
                      {"length", at.L},
                      {"kind", "softmax"},
                      {"engine", name(engine)},
                      {"rows", std::move(rows)},
                      {"limit", {{"origin", origin}}}};
  print_result(globals, "attend", document,
               fmt::format("{} of {} tokens in dimension {} ({} engine), beside the limit of: {}\n",
                           what, at.L, d, name(engine), origin) +
                   text);
}

}  // namespace esscher::cli
