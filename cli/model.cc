// esscher model: a small decoder model, its heads, and what it notices when they are replaced.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "cli/dry_run.h"
#include "cli/execute.h"
#include "cli/verbs.h"
#include "esscher/base/error.h"
#include "esscher/io/file.h"
#include "esscher/io/npy.h"
#include "esscher/json/rows.h"
#include "esscher/model/capture.h"
#include "esscher/model/effect.h"
#include "esscher/model/tokenizer.h"
#include "esscher/report/page_model.h"
#include "esscher/report/report.h"

namespace esscher::cli {
namespace {

struct ModelArguments {
  std::string model, tokens, text, tokenizer, capture, replace, logits, tail = "finite";
  std::int64_t window = 0, sinks = 1, heavy = 0, from = -1;
  bool select = false;
};

// Token ids of --tokens, or of --text by the words of --tokenizer.
Texts texts_of(const ModelArguments& arguments, const ModelSpec& spec) {
  if (arguments.text.empty() == arguments.tokens.empty()) {
    throw ConfigError(
        "model: expected either --tokens FILE, token ids, or --text FILE with --tokenizer FILE");
  }
  if (arguments.text.empty()) return parse_tokens(arguments.tokens, read_text(arguments.tokens));
  if (arguments.tokenizer.empty()) {
    throw ConfigError("model: --text is \"" + arguments.text +
                      "\", but there is no --tokenizer, expected the tokenizer.bin of the "
                      "checkpoint");
  }
  const MappedFile words(arguments.tokenizer);
  const Tokenizer tokenizer = parse_tokenizer(arguments.tokenizer, words.bytes(), spec.vocab);
  Texts texts = encode_lines(tokenizer, read_text(arguments.text));
  if (texts.empty()) throw FileError(arguments.text + ": no text, expected at least one line");
  return texts;
}

// The plan of the file, or one window for all heads; none if neither was asked for.
std::optional<HeadPlan> plan_of(const ModelArguments& arguments, const ModelSpec& spec) {
  if (!arguments.replace.empty()) {
    const HeadPlan plan = parse_plan(arguments.replace, read_text(arguments.replace));
    check_plan(plan, spec);
    return plan;
  }
  if (arguments.window == 0 && arguments.heavy > 0) {
    throw ConfigError(
        fmt::format("model: --heavy is {}, expected --window beside it", arguments.heavy));
  }
  if (arguments.window == 0) return std::nullopt;
  if (arguments.window < std::max<Index>(1, arguments.sinks)) {
    throw ConfigError(
        fmt::format("model: --window is {}, expected at least 1 and the number of --sinks, {}",
                    arguments.window, arguments.sinks));
  }
  HeadPlan plan;
  plan.fallback = WindowOptions{.window = arguments.window,
                                .sinks = arguments.sinks,
                                .heavy = arguments.heavy,
                                .tail = parse_enum<Tail>(arguments.tail)};
  if (plan.fallback->tail == Tail::rotary && arguments.heavy > 0) {
    throw ConfigError(
        fmt::format("model: --heavy is {}, expected 0 with a rotary tail", arguments.heavy));
  }
  check_plan(plan, spec);
  return plan;
}

Index first_position(const ModelArguments& arguments, const Texts& texts) {
  if (arguments.from >= 0) return arguments.from;
  std::size_t shortest = texts.front().size();
  for (const auto& text : texts) shortest = std::min(shortest, text.size());
  return std::min<Index>(64, static_cast<Index>(shortest) / 4);
}

double nats_of(const Model& model, const Texts& texts, Index from) {
  constexpr Index kRows = 32;  // positions whose probabilities are held at a time
  double sum = 0;
  double count = 0;
  for (const auto& text : texts) {
    const Pass pass = run_model(model, text, softmax_head);
    const auto end = static_cast<Index>(text.size()) - 1;
    for (Index first = from; first < end; first += kRows) {
      const Index rows = std::min(kRows, end - first);
      const MatrixF p = log_probabilities(model, pass, first, rows);
      for (Index i = 0; i < rows; ++i) {
        sum -= p(i, text[static_cast<std::size_t>(first + i) + 1]);
        count += 1;
      }
    }
  }
  return count > 0 ? sum / count : 0.0;
}

// Wall-clock seconds per token of one pass over the first text.
double seconds_per_token(const Model& model, const Texts& texts, const HeadRule& rule) {
  const auto start = std::chrono::steady_clock::now();
  (void)run_model(model, texts.front(), rule);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return took.count() / static_cast<double>(texts.front().size());
}

std::string effect_text(const std::vector<EffectRow>& rows) {
  std::string text = fmt::format("{:<10} {:>8} {:>9} {:>10} {:>22} {:>7} {:>8} {:>9}\n", "replaced",
                                 "nats", "change", "KL", "95 % interval", "top-1", "error", "W_O");
  for (const EffectRow& row : rows) {
    text += fmt::format(
        "{:<10} {:>8.4f} {:>+9.4f} {:>10.5f} {:>22} {:>7.3f} {:>8.4f} {:>9.5f}\n", row.plan,
        row.nats, row.nats_replaced - row.nats, row.kl,
        fmt::format("{:.5f} .. {:.5f}{}", row.kl_low, row.kl_high, row.heavy ? " !" : ""), row.top1,
        row.error, row.wo_error);
  }
  const EffectRow& plan = rows.front();
  if (std::any_of(rows.begin(), rows.end(), [](const EffectRow& row) { return row.heavy; })) {
    text += "!: the interval cannot be trusted; longer texts help.\n";
  }
  return text + fmt::format("state: {} numbers instead of {}, {} bytes instead of {} in float32\n",
                            plan.state, plan.cache, 4 * plan.state, 4 * plan.cache);
}

// Names of the heads that were replaced alone, from the least to the most that the model notices.
Json ranking_json(const std::vector<EffectRow>& rows) {
  const auto names = [&](double EffectRow::*by) {
    std::vector<const EffectRow*> order;
    for (std::size_t i = 1; i < rows.size(); ++i) order.push_back(&rows[i]);
    std::stable_sort(order.begin(), order.end(),
                     [by](const EffectRow* a, const EffectRow* b) { return a->*by < b->*by; });
    Json out = Json::array();
    for (const EffectRow* row : order) out.push_back(row->plan);
    return out;
  };
  return {{"kl", names(&EffectRow::kl)}, {"wo_error", names(&EffectRow::wo_error)}};
}

// What decides the numbers, as the configuration of the run.
std::string run_config(const ModelArguments& arguments, Index from) {
  return fmt::format(
      "[model]\npath = \"{}\"\n{}replace = \"{}\"\nwindow = {}\nsinks = {}\n"
      "tail = \"{}\"\nfrom = {}\nselect = {}\n{}",
      arguments.model,
      arguments.text.empty()
          ? fmt::format("tokens = \"{}\"\n", arguments.tokens)
          : fmt::format("text = \"{}\"\ntokenizer = \"{}\"\n", arguments.text, arguments.tokenizer),
      arguments.replace, arguments.window, arguments.sinks, arguments.tail, from, arguments.select,
      // A run without heavy keys is the same as one that was begun before there were any.
      arguments.heavy > 0 ? fmt::format("heavy = {}\n", arguments.heavy) : "");
}

// What the page says of the model and of the texts.
std::string model_setting(const Model& model, const Texts& texts) {
  const ModelSpec& spec = model.spec;
  std::size_t tokens = 0;
  for (const auto& text : texts) tokens += text.size();
  return fmt::format(
      "The model {} of the {} family has {} layers of {} heads of dimension {} and {} words. It "
      "reads {} text{} of {} tokens together.",
      model.name, name(spec.family), spec.layers, spec.heads, spec.head_dim, spec.vocab,
      texts.size(), texts.size() == 1 ? "" : "s", tokens);
}

std::vector<EffectRow> effect_run(const Cells<EffectRow>& cells, const ModelArguments& arguments,
                                  Index from, const Globals& globals, const Model& model,
                                  const Texts& texts) {
  Run run =
      open_run(globals.out,
               {.verb = "model", .config_toml = run_config(arguments, from), .seed = globals.seed});
  std::vector<EffectRow> rows = rows_of_cells(globals, &run, cells);
  if (run.is_writer()) {
    Page page = model_page(rows);
    page.setting = model_setting(model, texts);
    set_page(run, page);
    write_report(run, page, run.directory() / "report.html");
  }
  return rows;
}

// Passes over the texts: one of the model as it is, and one for each row.
DryRun estimate(const ModelArguments& arguments, const std::shared_ptr<const Model>& model,
                const Texts& texts, const std::optional<HeadPlan>& plan) {
  const std::size_t rows =
      plan ? effect_cells(nullptr, *model, *plan, arguments.select).keys.size() : 0;
  std::size_t tokens = 0;
  for (const auto& text : texts) tokens += text.size();
  const double once = cpu_seconds([&] { (void)run_model(*model, texts.front(), softmax_head); });
  const double passes = static_cast<double>(rows + 1 + (arguments.capture.empty() ? 0 : 1)) *
                        static_cast<double>(tokens) / static_cast<double>(texts.front().size());
  return {.verb = "model",
          .what = fmt::format("{} on {} text{} of {} tokens{}", model->name, texts.size(),
                              texts.size() == 1 ? "" : "s", tokens,
                              plan ? ", as it is and with replaced heads" : ""),
          .engine = "a forward pass in float32, softmax and windows with a tail",
          .count = static_cast<std::int64_t>(plan ? rows : texts.size()),
          .cpu_seconds = once * passes,
          .basis = "measured on one pass over the first text"};
}

void run_model_verb(const ModelArguments& arguments, const Globals& globals) {
  const auto model = std::make_shared<const Model>(load_model(arguments.model));
  const Texts texts = texts_of(arguments, model->spec);
  const Index from = first_position(arguments, texts);
  const std::optional<HeadPlan> plan = plan_of(arguments, model->spec);
  if (arguments.select && !plan) {
    throw ConfigError("model: --select replaces heads one by one, expected --replace or --window");
  }
  if (globals.dry_run) {
    return print_dry_run(globals, estimate(arguments, model, texts, plan));
  }
  const ModelSpec& spec = model->spec;
  Json out{{"model", model->name}, {"family", name(spec.family)}, {"layers", spec.layers},
           {"heads", spec.heads},  {"kv_heads", spec.kv_heads},   {"head_dim", spec.head_dim},
           {"vocab", spec.vocab},  {"texts", texts.size()},       {"from", from}};
  std::string text;
  if (!arguments.capture.empty()) capture_heads(*model, texts, arguments.capture);
  if (!arguments.logits.empty()) {
    const Pass pass = run_model(*model, texts.front(), softmax_head);
    const auto n = static_cast<Index>(texts.front().size());
    write_npy(arguments.logits, log_probabilities(*model, pass, 0, n).cast<double>());
  }
  if (!plan) {
    const double nats = nats_of(*model, texts, from);
    put(out, "nats", nats);
    text = fmt::format("{}: {} layers of {} heads, {:.6f} nats per token from position {}\n",
                       model->name, spec.layers, spec.heads, nats, from);
    print_result(globals, "model", std::move(out), text);
    return;
  }
  const auto study = std::make_shared<const EffectStudy>(model, texts, from);
  const Cells<EffectRow> cells = effect_cells(study, *model, *plan, arguments.select);
  std::vector<EffectRow> rows = globals.out.empty()
                                    ? compute_here(cells)
                                    : effect_run(cells, arguments, from, globals, *model, texts);
  std::stable_sort(rows.begin() + 1, rows.end(),
                   [](const EffectRow& a, const EffectRow& b) { return a.kl < b.kl; });
  out["rows"] = rows_json(rows);
  out["state_bytes"] = 4 * rows.front().state;
  out["cache_bytes"] = 4 * rows.front().cache;
  if (arguments.select) out["ranking"] = ranking_json(rows);
  put(out, "seconds_per_token", seconds_per_token(*model, texts, softmax_head));
  put(out, "seconds_per_token_replaced",
      seconds_per_token(*model, texts, planned_heads(*plan, spec)));
  print_result(globals, "model", std::move(out), effect_text(rows));
}

}  // namespace

void add_model(const Command& app, Globals& globals) {
  const Command verb = add_verb(
      app, globals, "model", "Run a small decoder model; capture and replace its heads",
      "The model is a folder with config.json and .safetensors (Llama or GPT-2 family), or a\n"
      "checkpoint *.bin of llama2.c. Texts are token ids, one text per line, or words with the\n"
      "tokenizer.bin of llama2.c.\n"
      "Examples:\n"
      "  esscher model stories15M.bin --tokens text.txt --capture heads.safetensors\n"
      "  esscher model stories15M.bin --tokens text.txt --window 16 --tail finite --json\n"
      "  esscher model stories15M.bin --text story.txt --tokenizer tokenizer.bin\n"
      "  esscher model stories15M.bin --tokens text.txt --replace plan.json --select --out runs/m",
      {.config = false, .dry_run = true});
  auto arguments = std::make_shared<ModelArguments>();
  verb.option("model", arguments->model, "folder with config.json, or *.bin").required();
  verb.option("--tokens", arguments->tokens, "file of token ids, one text per line");
  const auto text = verb.option("--text", arguments->text, "file of words, one text per line")
                        .excludes("--tokens");
  verb.option("--tokenizer", arguments->tokenizer,
              "words of the vocabulary: tokenizer.bin of llama2.c")
      .needs(text);
  verb.option("--capture", arguments->capture, "write Q, K, V, W_O of every head, .safetensors");
  verb.option("--replace", arguments->replace, "plan of heads to replace, .json");
  verb.option("--window", arguments->window, "exact keys of every head, instead of a plan")
      .between(0, 1000000000)
      .excludes("--replace");
  verb.option("--sinks", arguments->sinks, "of them, the first keys of the text")
      .between(0, 1000000);
  verb.option("--heavy", arguments->heavy,
              "keep so many more keys: those that earlier queries weighed most")
      .between(0, 1000000)
      .excludes("--replace");
  verb.option("--tail", arguments->tail, "what stands for the other keys (default finite)")
      .one_of({"none", "mean", "first", "gaussian", "finite", "rotary"});
  verb.flag("--select", arguments->select, "also replace each head alone, ranked by KL");
  verb.option("--from", arguments->from,
              "first position that is judged (default: 64, or a quarter of the shortest text)");
  verb.option("--logits", arguments->logits, "write log-probabilities of the first text, .npy");
  verb.run([arguments, &globals] { run_model_verb(*arguments, globals); });
}

}  // namespace esscher::cli
