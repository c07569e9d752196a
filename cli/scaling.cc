// esscher scaling: what temperature a long prompt needs.
#include "esscher/scaling/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>
#include <utility>

#include "cli/dry_run.h"
#include "cli/execute.h"
#include "cli/rows.h"
#include "cli/scaling_tokens.h"
#include "cli/verbs.h"
#include "esscher/base/error.h"
#include "esscher/base/length.h"
#include "esscher/base/number_text.h"
#include "esscher/config/measure.h"
#include "esscher/config/schedule.h"
#include "esscher/config/sweep.h"
#include "esscher/heads/head_scores.h"
#include "esscher/heads/load.h"
#include "esscher/io/file.h"
#include "esscher/json/scaling.h"
#include "esscher/report/page_scaling.h"
#include "esscher/report/report.h"
#include "esscher/scaling/keep.h"

namespace esscher::cli {
namespace {

struct ScalingFlags {
  std::string preset;
  std::vector<std::string> schedules;
  std::optional<double> c, train;
  std::string table, formula;
  std::string lengths;
  std::vector<double> log_lengths;
  std::optional<double> tau;
  double gap = 0;
  int draws = 1001;
  std::string keep;
  std::string write_table;
  std::string heads, head;
  Index query = -1;  // the last
};

// The limit of a phase is flagged where it is further than this from the prediction for all phases.
constexpr double kLimitOff = 0.1;

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t to = std::min(list.find(',', from), list.size());
    out.push_back(list.substr(from, to - from));
    from = to + 1;
  }
  return out;
}

std::vector<double> lengths_of(const ScalingFlags& flags) {
  std::vector<double> out;
  if (!flags.log_lengths.empty()) {
    for (const double x : flags.log_lengths) {
      if (!(x > 0 && x < 690)) {
        throw_argument("scaling", "--log-length", to_text(x), "a number in (0, 690)");
      }
      out.push_back(std::exp(x));
    }
    return out;
  }
  for (const std::string& word : words_of(flags.lengths)) {
    const Length length = Length::parse(word);
    if (length.is_infinite() || length.count() < 2) {
      throw_argument("scaling", "--lengths", word, "integers >= 2, e.g. 100,1e4,1e12");
    }
    out.push_back(static_cast<double>(length.count()));
  }
  return out;
}

// A name of a schedule, or the formula itself.
ScheduleOptions kind_or_formula(const std::string& word) {
  for (const auto& [kind, text] : enum_names(ScheduleKind()).table) {
    if (word == text) return {.kind = kind};
  }
  ScheduleOptions options{.kind = ScheduleKind::formula, .formula = word};
  try {
    (void)Schedule(options);
  } catch (const ArgumentError& error) {
    throw_argument("scaling", "--schedule", word,
                   fmt::format("one of {}, or a formula of n ({})",
                               fmt::join(enum_words<ScheduleKind>(), ", "), error.what()));
  }
  return options;
}

std::vector<Schedule> schedules_of(const ScalingFlags& flags) {
  std::vector<Schedule> out;
  std::vector<std::string> words = flags.schedules;
  if (words.empty()) words = {std::string(name(ScheduleKind::constant))};
  for (const std::string& word : words) {
    ScheduleOptions options = kind_or_formula(word);
    // With several schedules an option goes to those that have it.
    const bool alone = words.size() == 1;
    if (alone || has_coefficient(options.kind)) options.c = flags.c;
    if (alone || has_training_length(options.kind)) options.train = flags.train;
    if (options.kind == ScheduleKind::table) options.table = read_schedule_table(flags.table);
    if (options.kind == ScheduleKind::formula && options.formula.empty()) {
      options.formula = flags.formula;
    }
    out.emplace_back(options);
  }
  return out;
}

// The scores of one query of a head in a file.
ScoreModel head_scores_of(const ScalingFlags& flags) {
  const std::vector<Head> heads = load_heads(flags.heads);
  std::string names;
  const Head* found = flags.head.empty() && heads.size() == 1 ? &heads.front() : nullptr;
  for (const Head& head : heads) {
    if (head.name == flags.head) found = &head;
    names += (names.empty() ? "" : ", ") + head.name;
  }
  if (found == nullptr) throw_argument("scaling", "--head", flags.head, "one of " + names);
  return head_scores(*found, flags.query < 0 ? found->n_queries - 1 : flags.query);
}

// Gaussian scores by --tau, those of a head, or those of [measure], [attention] and the first query of
// [query].
ScoreModel scores_of(const Globals& globals, const ScalingFlags& flags, const Config& config) {
  if (!flags.heads.empty()) {
    if (flags.tau)
      throw_argument("scaling", "--tau", to_text(*flags.tau), "no --tau beside --heads");
    config.check_all_used();
    return head_scores_of(flags);
  }
  if (!flags.head.empty() || flags.query >= 0) {
    const bool head = !flags.head.empty();
    throw_argument("scaling", head ? "--head" : "--query",
                   head ? flags.head : std::to_string(flags.query), "--heads beside it");
  }
  const bool configured = config.root().has("measure");
  if (configured && flags.tau) {
    throw_argument("scaling", "--tau", to_text(*flags.tau), "no --tau beside [measure]");
  }
  if (!configured) {
    config.check_all_used();
    return ScoreModel::gaussian(flags.tau.value_or(1));
  }
  const Problem problem = read_problem(config.root());
  config.check_all_used();
  Vector z;
  if (problem.nu) {
    z = problem.nu->sample(Stream(globals.seed), 1).tokens().row(0).transpose();
  } else {
    z = problem.points.row(0).transpose();
  }
  return ScoreModel::layer({problem.mu, problem.attention, z});
}

// The limit of the phase is far from the prediction for all phases.
bool is_flagged(const ScalingRow& r) {
  return std::abs(r.predicted_H / r.crossover_H - 1) > kLimitOff;
}

// How widely the weights are spread.
std::string spread_text(const std::vector<ScalingRow>& rows) {
  constexpr auto kLine =
      "{:>10}  {:>9}  {:>8}  {:>10}  {:>10}  {:>10}  {:>16}  {:>10}  {:>8}  {}\n";
  std::string out = fmt::format(kLine, "L", "factor", "tau", "E H", "predicted", "limit",
                                "median H", "ESS", "d tau", "phase");
  std::string schedule;
  for (const ScalingRow& r : rows) {
    if (r.schedule != schedule) out += fmt::format("{}\n", schedule = r.schedule);
    out += fmt::format(kLine, brief(r.L, 5), brief(r.factor), brief(r.tau), brief(r.H),
                       brief(r.crossover_H), brief_or_dash(r.predicted_H),
                       r.H_median ? brief_with_error(*r.H_median, *r.H_median_error) : "-",
                       brief(r.ess), brief_or_dash(r.boundary_distance, 3),
                       std::string(name(r.phase)) + (is_flagged(r) ? " *" : ""));
  }
  return out;
}

// What a reader of the weights gets, each number beside the prediction for all phases.
std::string reading_text(const std::vector<ScalingRow>& rows) {
  constexpr auto kLine = "{:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}\n";
  std::string out =
      fmt::format(kLine, "L", "entropy", "predicted", "needle", "predicted", "D(L)", "predicted");
  std::string schedule;
  for (const ScalingRow& r : rows) {
    if (r.schedule != schedule) out += fmt::format("{}\n", schedule = r.schedule);
    out += fmt::format(kLine, brief(r.L, 5), brief(r.entropy), brief(r.crossover_entropy),
                       brief(r.needle), brief(r.crossover_needle), r.error ? brief(*r.error) : "-",
                       r.crossover_error ? brief_or_dash(*r.crossover_error) : "-");
  }
  return out;
}

std::string rows_text(const std::vector<ScalingRow>& rows, const std::vector<ScalingEvent>& events,
                      double gap) {
  std::string out = spread_text(rows) + "\n" + reading_text(rows);
  out += fmt::format(
      "\nE H is the mean of sum omega^2, ESS = 1/E H. predicted: one formula for all phases; "
      "limit: that of the phase.\nd tau: how far the nearest boundary of a phase is, as a change "
      "of tau. entropy is that of the weights over\nlog L, needle the weight of one more token "
      "whose score lies {} above the mean before multiplication,\nD(L) the mean squared error of "
      "the layer; of Gaussian scores that of their weighted mean, over tau^2.\n",
      brief(gap));
  if (std::ranges::any_of(rows, is_flagged)) {
    out += fmt::format(
        "* the limit is more than {} % off: a boundary of the phase is near, or the prompt "
        "short.\n",
        brief(100 * kLimitOff));
  }
  for (const ScalingEvent& e : events) {
    const char* what = e.change == ScalingChange::dilutes    ? "the needle's weight falls below 1/2"
                       : e.change == ScalingChange::recovers ? "the needle's weight rises above 1/2"
                       : e.change == ScalingChange::freezes  ? "the weights freeze on few tokens"
                                                             : "the weights thaw";
    out += fmt::format("{}: at L = {} {}\n", e.schedule, brief(e.L, 4), what);
  }
  return out;
}

std::string kept_text(Kept kept, double train, const std::vector<KeptFactor>& factors,
                      const std::vector<FamilyFit>& families) {
  std::string out = fmt::format("factors that keep the {} of L = {}\n\n{:>10}  {:>12}  {:>12}\n",
                                name(kept), brief(train, 6), "L", "factor", name(kept));
  for (const KeptFactor& k : factors) {
    out += fmt::format("{:>10}  {:>12}  {:>12}\n", brief(k.L, 5),
                       k.factor ? brief(*k.factor, 6) : "none", brief(k.value, 6));
  }
  if (!families.empty()) out += "\nnearest published forms, by their largest relative error\n";
  for (const FamilyFit& f : families) {
    out += fmt::format("{:>10}  {:>12}  {:>11} %\n", f.family,
                       f.c ? "c = " + brief(*f.c) : std::string("-"), brief(100 * f.worst, 3));
  }
  return out;
}

void run_keep(const Globals& globals, const ScalingFlags& flags, const ScoreModel& scores) {
  const Kept kept = parse_enum<Kept>(flags.keep);
  const double train = flags.train.value_or(4096);
  const std::vector<double> lengths = lengths_of(flags);
  if (globals.dry_run) {
    const double once =
        cpu_seconds([&] { (void)kept_factors(scores, kept, flags.gap, train, {lengths.back()}); });
    return print_dry_run(
        globals, {.verb = "scaling",
                  .what = fmt::format("a search for the factors that keep the {} at {} lengths",
                                      name(kept), lengths.size()),
                  .engine = "universal functions of the scores; no token is drawn",
                  .unit = "lengths",
                  .count = static_cast<std::int64_t>(lengths.size()),
                  .cpu_seconds = once * static_cast<double>(lengths.size()),
                  .basis = "measured at the last length"});
  }
  const auto factors = kept_factors(scores, kept, flags.gap, train, lengths);
  const auto families = nearest_families(factors, train);
  if (!flags.write_table.empty()) {
    std::string text = "n,factor\n";
    for (const KeptFactor& k : factors) {
      if (k.factor) text += to_text(k.L) + "," + to_text(*k.factor) + "\n";
    }
    write_text(flags.write_table, text);
  }
  print_result(globals, "scaling", to_json(kept, train, factors, families),
               kept_text(kept, train, factors, families));
}

void run_scaling(const Globals& globals, const ScalingFlags& flags) {
  const Config config = globals.load_config(flags.preset);
  if (config.root().has("tokens")) return run_published_tokens(globals, config);
  const ScoreModel scores = scores_of(globals, flags, config);
  if (!flags.keep.empty()) return run_keep(globals, flags, scores);
  if (!flags.write_table.empty()) {
    throw_argument("scaling", "--write-table", flags.write_table, "--keep beside it");
  }
  const std::vector<Schedule> schedules = schedules_of(flags);
  const ScalingOptions options{.gap = flags.gap, .draws = flags.draws, .seed = globals.seed};
  const auto cells = scaling_cells(scores, schedules, lengths_of(flags), options);
  if (globals.dry_run) {
    return print_dry_run(
        globals,
        {.verb = "scaling",
         .what = fmt::format("a study of {} schedule{}", schedules.size(),
                             schedules.size() == 1 ? "" : "s"),
         .engine = flags.draws > 0
                       ? fmt::format("exact; the median of H is drawn from {} prompts", flags.draws)
                       : "exact",
         .count = static_cast<std::int64_t>(cells.keys.size()),
         .cpu_seconds = cells_seconds(cells),
         .basis = "measured on one cell"});
  }
  std::optional<Run> run;
  if (!globals.out.empty()) {
    std::string text = config.resolved_toml();
    text += fmt::format("\n[scaling]\nschedules = \"{}\"\nkeys = {}\ngap = {}\ndraws = {}\n",
                        fmt::join(flags.schedules, ","), cells.keys.size(), to_text(flags.gap),
                        flags.draws);
    run = open_run(globals.out, {"scaling", text, globals.seed});
  }
  const std::vector<ScalingRow> rows = rows_of_cells(globals, run ? &*run : nullptr, cells);
  std::vector<ScalingEvent> events;
  std::vector<RetrievalLength> retrieval;
  for (const Schedule& s : schedules) {
    retrieval.push_back(retrieval_length(scores, s, flags.gap));
    const auto more = scaling_events(scores, s, flags.gap);
    events.insert(events.end(), more.begin(), more.end());
  }
  const Json document = to_json(rows, events, retrieval);
  if (run) {
    run->set_document("result", document);
    const Page page = scaling_page(scores, rows, events, flags.gap);
    set_page(*run, page);
    if (run->is_writer()) write_report(*run, page, run->directory() / "report.html");
  }
  print_result(globals, "scaling", document, rows_text(rows, events, flags.gap));
}

}  // namespace

void add_scaling(const Command& app, Globals& globals) {
  const Command verb = add_verb(
      app, globals, "scaling", "What temperature a long prompt needs: schedules of the score scale",
      "Scores are N(0, tau^2), those of [measure] under [attention] at the first query of "
      "[query],\nor those of a head in a file (--heads): tokens are then drawn from its own keys.\n"
      "[tokens] has token laws of the literature instead, beside their limit formulas.\n"
      "Examples:\n"
      "  esscher scaling --schedule sqrt-log --c 2 --lengths 1e2,1e4,1e12\n"
      "  esscher scaling --schedule constant --schedule qwen --tau 2 --needle 12 --lengths "
      "1e3,1e5\n"
      "  esscher scaling --schedule \"0.1*log(n/4096) + 1\" --tau 2\n"
      "  esscher scaling --heads model.safetensors --head L3.H6 --schedule qwen\n"
      "  esscher scaling --set tokens.kind=equiangular --set \"tokens.gamma=[1,2,3]\"\n"
      "  esscher scaling --preset bruno-2605.08505\n"
      "  esscher scaling --keep ess --train 4096 --tau 1.5 --lengths 8192,65536,1e6",
      {.dry_run = true});
  const auto flags = std::make_shared<ScalingFlags>();
  verb.option("--schedule", flags->schedules,
              fmt::format("what scores are multiplied by: {} or a formula of n; may be repeated",
                          fmt::join(enum_words<ScheduleKind>(), ", ")))
      .type_name("NAME|FORMULA")
      .one_value();
  verb.option("--c", flags->c, "coefficient of the schedule").type_name("C");
  verb.option("--train", flags->train, "length of training, n0 of the schedule or of --keep")
      .type_name("N");
  verb.option("--table", flags->table, "CSV of lengths and factors, for --schedule table")
      .type_name("FILE");
  verb.option("--formula", flags->formula, "factor as a formula of n, for --schedule formula")
      .type_name("TEXT");
  flags->lengths = "100,1000,1e4,1e5,1e6,1e9,1e12";
  verb.option("--lengths", flags->lengths, "prompt lengths, e.g. 100,1e4,1e12")
      .type_name("L,..")
      .show_default();
  verb.option("--log-length", flags->log_lengths,
              "natural logarithms of lengths instead, up to 690 for Gaussian scores")
      .type_name("X,..")
      .delimiter(',');
  verb.option("--tau", flags->tau, "deviation of Gaussian scores at factor 1 (1 unless given)")
      .type_name("T");
  verb.option("--needle", flags->gap, "how far the needle's score lies above the mean, at factor 1")
      .type_name("GAP")
      .show_default();
  verb.option("--draws", flags->draws, "prompts drawn for the median of H, 0 for none")
      .type_name("N")
      .between(0, 1000000)
      .show_default();
  verb.option("--preset", flags->preset, "token laws of a publication, see 'esscher presets'")
      .type_name("NAME");
  verb.option("--heads", flags->heads,
              "a file of heads (see esscher heads) to take the scores from")
      .type_name("FILE");
  verb.option("--head", flags->head, "with --heads: its name, if the file has several")
      .type_name("NAME");
  verb.option("--query", flags->query, "with --heads: number of the query, the last unless given")
      .type_name("I");
  verb.option("--keep", flags->keep, "find the factors that keep this constant instead")
      .one_of(enum_words<Kept>());
  verb.option("--write-table", flags->write_table, "with --keep: the factors as a CSV for --table")
      .type_name("FILE");
  verb.run([&globals, flags] { run_scaling(globals, *flags); });
}

}  // namespace esscher::cli
