#include "esscher/config/keys.h"

#include <algorithm>

#include "esscher/base/error.h"
#include "esscher/base/suggest.h"
#include "esscher/scaling/schedule.h"

namespace esscher {
namespace {

using K = KeyKind;

TableDeclaration matrix_table() {
  return {
      "matrix",
      "a matrix by its kind",
      {{"kind",
        K::word,
        "",
        "what the other keys describe",
        {"identity", "diagonal", "kcm", "dense", "random", "file"}},
       {"values", K::numbers, "", "diagonal entries (kind = \"diagonal\")"},
       {"rho", K::number, "", "entries rho^|i-j| (kind = \"kcm\")"},
       {"rows", K::rows, "", "the rows (kind = \"dense\")"},
       {"seed", K::integer, "0", "of iid N(0,1) entries (kind = \"random\")"},
       {"path", K::text, "", "an .npy, .csv, .npz#name or .safetensors#tensor (kind = \"file\")"},
       {"scale", K::number, "1.0", "a factor"},
       {"operator_norm", K::number, "", "the matrix is scaled to this operator norm"},
       {"shape", K::numbers, "", "[rows, cols], where the place leaves it open"}}};
}

TableDeclaration measure_table() {
  return {
      "measure",
      "the law of the tokens",
      {{"type",
        K::word,
        "",
        "the family",
        {"gaussian", "empirical", "rademacher", "uniform", "sphere", "ball", "categorical",
         "laplace", "mixture", "product", "affine", "sum", "dirac", "elliptical", "student",
         "single_index", "stationary"},
        {},
        "\"gaussian\""},
       {"dim", K::integer, "", "dimension of a token", {}, {}, "2"},
       {"mean", K::numbers, "", "mean of a gaussian, elliptical or student law, 0 unless given"},
       {"cov", K::matrix, "1.0", "covariance of a gaussian; see the others", {}, "matrix"},
       {"tokens", K::rows, "", "tokens of an empirical measure"},
       {"file", K::text, "", "tokens of an empirical or a stationary measure, from a file"},
       {"weights", K::numbers, "", "weights of tokens, parts or scales, equal unless given"},
       {"radius", K::number, "1.0", "of a sphere or ball"},
       {"b", K::number, "1.0", "scale of a laplace law"},
       {"probs", K::numbers, "", "probabilities of a categorical law, equal unless given"},
       {"shift", K::numbers, "", "what an affine image adds, 0 unless given"},
       {"matrix", K::matrix, "1.0", "what an affine image multiplies by", {}, "matrix"},
       {"point", K::numbers, "", "the only token of a dirac law"},
       {"scales", K::numbers, "", "factors of the covariance of an elliptical law"},
       {"radial",
        K::word,
        "\"scales\"",
        "law of the factor of an elliptical law",
        {"scales", "gamma"}},
       {"shape", K::number, "", "of the gamma law of mean 1 of an elliptical law"},
       {"bound", K::number, "", "where that gamma law is cut off"},
       {"nu", K::number, "", "degrees of freedom of a student law"},
       {"index", K::numbers, "", "w of a single_index label g(w'x) + noise"},
       {"link",
        K::word,
        "\"tanh\"",
        "g of a single_index label",
        {"sign", "probit", "tanh", "relu", "sin", "erf", "polynomial"}},
       {"coefficients", K::numbers, "", "c0, c1, c2 of a polynomial link"},
       {"noise_variance", K::number, "0.0", "of the noise on a single_index label"},
       {"autocorrelation", K::numbers, "", "r1, r2, .. of a stationary sequence"},
       {"ar",
        K::matrix,
        "",
        "coefficients of a stationary autoregression: numbers, or matrices side by side",
        {},
        "matrix"},
       {"of", K::table, "", "the law of one token of a stationary sequence", {}, "measure"},
       {"parts",
        K::tables,
        "",
        "parts of a mixture, product, sum or affine image",
        {},
        "measure"}}};
}

TableDeclaration attention_table() {
  return {"attention",
          "the head",
          {{"kind", K::word, "\"softmax\"", "softmax or linear attention", {"softmax", "linear"}},
           {"U", K::matrix, "1.0", "scores are <U z, z'>", {}, "matrix"},
           {"V", K::matrix, "1.0", "what is read of a token", {}, "matrix"},
           {"K", K::matrix, "", "keys, beside Q and instead of U", {}, "matrix"},
           {"Q", K::matrix, "", "queries, beside K and instead of U", {}, "matrix"},
           {"score_scale", K::number, "1.0", "a factor on all scores"}}};
}

TableDeclaration query_table() {
  TableDeclaration out = measure_table();
  out.name = "query";
  out.meaning = "the queries: points, or a measure to draw them from";
  for (KeyDeclaration& key : out.keys) key.example = {};
  out.keys.insert(out.keys.begin(),
                  {{"points", K::rows, "", "given queries, one per row", {}, {}, "[[1, 0]]"},
                   {"z", K::numbers, "", "one given query"}});
  return out;
}

TableDeclaration reference_table() {
  TableDeclaration out = measure_table();
  out.name = "reference";
  out.meaning = "the measure that given tokens are compared with";
  for (KeyDeclaration& key : out.keys) key.example = {};
  return out;
}

TableDeclaration prompt_table() {
  return {"prompt",
          "what a prompt holds beside iid tokens",
          {{"given", K::rows, "", "tokens at the start of the prompt"},
           {"file", K::text, "", "the same, from a file"},
           {"include_query", K::boolean, "false", "the query is the last token: self-attention"},
           {"sink_logits", K::numbers, "", "logits that take weight and have the value 0"},
           {"bias", K::table, "", "log-weights by position, 0 unless given", {}, "prompt_bias"},
           {"groups", K::tables, "", "groups of tokens beside [measure]", {}, "prompt_group"}}};
}

TableDeclaration prompt_bias_table() {
  return {
      "prompt_bias",
      "log-weights by distance from the end of the prompt",
      {{"kind", K::word, "", "what the other keys describe", {"none", "alibi", "window", "table"}},
       {"slope", K::number, "", "-slope times the distance (kind = \"alibi\")"},
       {"width", K::integer, "", "tokens that are seen (kind = \"window\")"},
       {"values", K::numbers, "", "by distance, the last one beyond (kind = \"table\")"}}};
}

TableDeclaration prompt_group_table() {
  return {"prompt_group",
          "tokens of one law",
          {{"measure", K::table, "", "their law", {}, "measure"},
           {"count", K::integer, "", "how many, whatever the length"},
           {"share", K::number, "", "or their share of the tokens that are left"},
           {"bias", K::number, "0.0", "added to their scores"},
           {"name", K::text, "", "the name of the measure unless given"}}};
}

TableDeclaration lengths_table() {
  return {"lengths",
          "a geometric grid of prompt lengths, both ends included",
          {{"from", K::integer, "10", "the shortest prompt"},
           {"to", K::integer, "1000000", "the longest prompt"},
           {"per_decade", K::number, "4.0", "lengths per factor of ten"}}};
}

TableDeclaration sweep_table() {
  return {
      "sweep",
      "what is measured",
      {{"lengths", K::lengths, "", "prompt lengths, or { from, to, per_decade }", {}, "lengths"},
       {"metrics",
        K::words,
        "",
        "what is compared with its limit",
        {"output", "grad_v", "grad_u", "grad_k", "grad_q"}},
       {"engine",
        K::word,
        "\"auto\"",
        "how finite prompts are averaged over",
        {"auto", "exact", "sampled", "direct"}},
       {"queries", K::integer, "512", "queries to draw, where they are drawn"},
       {"replicates", K::integer, "8", "prompts per query, where they are drawn"},
       {"eps", K::numbers, "", "excess risks whose prompt length is asked for (icl compare)"}}};
}

TableDeclaration task_table() {
  return {"task",
          "what is learned in context: linear regression, or another type of task",
          {{"type",
            K::word,
            "\"regression\"",
            "the family; the keys below say which families have them",
            {"regression", "denoising", "single_index", "classification", "pool", "linear"}},
           {"dim", K::integer, "", "dimension of the features", {}, {}, "5"},
           {"task_variance", K::number, "1.0", "variance of the entries of w"},
           {"noise_variance", K::number, "0.0", "variance of the noise on labels"},
           {"query_noise", K::boolean, "false", "the label of the query is noisy too"},
           {"prompt_cov", K::matrix, "1.0", "covariance of the features", {}, "matrix"},
           {"query_cov",
            K::matrix,
            "",
            "of the query's features, prompt_cov unless given",
            {},
            "matrix"},
           {"features",
            K::word,
            "\"gaussian\"",
            "law of the features",
            {"gaussian", "rademacher", "uniform", "sphere"}},
           {"means", K::rows, "", "means of the mixture (denoising) or of the classes +1 and -1"},
           {"weights", K::numbers, "", "of components, classes or a pool, equal unless given"},
           {"loss",
            K::word,
            "",
            "what a prediction of a label loses (classification), \"squared\" unless given",
            {"squared", "logistic"}},
           {"means_law",
            K::word,
            "",
            "\"fixed\" for the given means, or how they are drawn for every prompt",
            {"fixed", "gaussian", "sphere"}},
           {"components", K::integer, "", "how many means are drawn, 2 unless given"},
           {"mean_scale", K::number, "", "deviation or radius of drawn means, 1 unless given"},
           {"gamma", K::number, "", "deviation of clean points (denoising), 1 unless given"},
           {"xi", K::number, "", "deviation of the noise (denoising), 1 unless given"},
           {"cov",
            K::matrix,
            "",
            "covariance of the features (single_index, classification, pool), 1.0 unless given",
            {},
            "matrix"},
           {"link",
            K::word,
            "",
            "g of a single_index label, \"tanh\" unless given",
            {"sign", "probit", "tanh", "relu", "sin", "erf", "polynomial"}},
           {"coefficients", K::numbers, "", "c0, c1, c2 of a polynomial link"},
           {"index_law",
            K::word,
            "",
            "law of w of single_index labels, \"gaussian\" unless given",
            {"gaussian", "sphere"}},
           {"pool", K::rows, "", "the vectors w of a pool"},
           {"pool_size", K::integer, "", "or how many are drawn once from N(0, task_variance I)"},
           {"pool_seed", K::integer, "", "of that draw, 0 unless given"},
           {"task_cov",
            K::matrix,
            "",
            "covariance of w (linear), task_variance I unless given",
            {},
            "matrix"},
           {"rank", K::integer, "", "w has only its first so many entries (linear)"},
           {"nonzero", K::integer, "", "w has only so many entries, at random places (linear)"},
           {"cov_law",
            K::word,
            "",
            "how prompts draw their covariance (linear), \"fixed\" unless given",
            {"fixed", "scale", "wishart"}},
           {"scale_deviation", K::number, "", "of log s (cov_law scale), 0.5 unless given"},
           {"degrees", K::integer, "", "rows of a Wishart matrix, 2 dim unless given"}}};
}

TableDeclaration head_table() {
  return {"head",
          "one head of a start",
          {{"U", K::matrix, "", "scores", {}, "matrix"},
           {"V", K::matrix, "", "what is read", {}, "matrix"}}};
}

TableDeclaration init_table() {
  return {"init",
          "the start of training",
          {{"kind",
            K::word,
            "\"balanced\"",
            "the family of starts; \"torch\" for several heads",
            {"torch", "balanced", "identity", "normal", "dense"}},
           {"alpha", K::number, "",
            "size of a balanced start, half of the theorem's bound unless given; 0.1 for other "
            "tasks than regression"},
           {"shape", K::matrix, "", "Theta Theta' of a balanced start", {}, "matrix"},
           {"seed", K::integer, "", "of a random start, the seed of the run unless given"},
           {"scale", K::number, "0.01",
            "of an identity start; the deviation of the entries of a normal one"},
           {"U", K::matrices, "", "of a dense start; a list for several heads", {}, "matrix"},
           {"V", K::matrices, "", "of a dense start; a list for several heads", {}, "matrix"},
           {"W",
            K::matrix,
            "",
            "the residual of a dense start, 0 unless given (other tasks than regression)",
            {},
            "matrix"},
           {"heads", K::tables, "", "dense starts of several heads", {}, "head"}}};
}

std::vector<std::string_view> schedule_words() {
  const auto names = enum_names(ScheduleKind{});
  std::vector<std::string_view> out;
  for (const auto& [kind, word] : names.table) out.push_back(word);
  return out;
}

TableDeclaration model_table() {
  return {"model",
          "the model that is trained",
          {{"kind", K::word, "\"softmax\"", "attention of the model", {"softmax", "linear"}},
           {"kinds",
            K::words,
            "",
            "of each head, where they differ (other tasks than regression)",
            {"softmax", "linear"}},
           {"family",
            K::word,
            "",
            "layers that icl optimum searches (\"scalars\" unless given) or icl flow, "
            "train and compare move in (\"full\")",
            {"scalars", "diagonal", "full"}},
           {"parametrisation",
            K::word,
            "\"UV\"",
            "the coordinates of training",
            {"UV", "KQV", "KQVO", "block"}},
           {"heads", K::integer, "1", "number of heads"},
           {"key_dim", K::integer, "", "rows of K and Q, dim + 1 unless given"},
           {"score_scale", K::number, "1.0", "a factor on scores, or \"1/sqrt(d)\"", {"1/sqrt(d)"}},
           {"score_schedule", K::table, "",
            "what scores are multiplied by at other lengths than train.length: a word, or a table",
            schedule_words(), "schedule"},
           {"init", K::table, "", "the start", {}, "init"}}};
}

TableDeclaration schedule_table() {
  return {"schedule",
          "a score scale that grows with the length of the prompt",
          {{"kind", K::word, "\"constant\"", "the family", schedule_words()},
           {"c", K::number, "", "coefficient of the families that have one"},
           {"train", K::number, "", "n0 of the families that have one, train.length unless given"},
           {"table", K::rows, "", "pairs [n, factor] of kind table"},
           {"file", K::text, "", "the same from a file of two columns"},
           {"formula", K::text, "", "the factor of kind formula, in n"}}};
}

TableDeclaration tokens_table() {
  return {
      "tokens",
      "tokens of the literature on self-attention, with their limit formulas",
      {{"kind", K::word, "", "the family", {"equiangular", "sphere"}},
       {"rho", K::number, "0.5", "inner product of equiangular tokens"},
       {"gamma", K::numbers, "", "scores of equiangular tokens are gamma log n <x,y>"},
       {"dim", K::integer, "3", "dimension of the space of a sphere"},
       {"kappa", K::numbers, "", "tokens of a sphere within a gap of 1 below the largest score"},
       {"lengths", K::lengths, "", "prompt lengths, 100 to 1e15 unless given"}}};
}

TableDeclaration train_table() {
  return {"train",
          "stochastic training",
          {{"length", K::length, "100", "length of the prompts, or \"inf\""},
           {"optimizer", K::word, "\"sgd\"", "the optimiser", {"sgd", "adam", "adamw"}},
           {"learning_rate", K::number, "0.001", "step size"},
           {"momentum", K::number, "0.0", "of sgd"},
           {"beta1", K::number, "0.9", "of adam"},
           {"beta2", K::number, "0.999", "of adam"},
           {"epsilon", K::number, "1e-8", "of adam"},
           {"weight_decay", K::number, "0.0", "of every optimiser"},
           {"clip", K::number, "", "longest gradient of a step; a longer one is shortened"},
           {"batch", K::integer, "128", "fresh prompts per step"},
           {"steps", K::integer, "10000", "steps"},
           {"gradient",
            K::word,
            "",
            "how the gradient of a step is made, \"auto\" unless given",
            {"auto", "sampled", "direct", "exact"}},
           {"loss", K::word, "\"half\"", "half or whole squared error", {"half", "mse"}},
           {"curve_block", K::integer, "100", "steps per point of the loss curve"},
           {"checkpoints", K::integer, "50", "states kept along the way"}}};
}

TableDeclaration flow_table() {
  return {
      "flow",
      "gradient flow and the risks along it",
      {{"rtol", K::number, "1e-8", "relative error per step"},
       {"atol", K::number, "1e-10", "absolute error per step"},
       {"t_end", K::number, "", "end of time, \"inf\" unless given", {"inf"}},
       {"stationary", K::number, "1e-9", "gradient norm that counts as zero"},
       {"max_steps", K::integer, "100000", "steps at most"},
       {"stepping", K::word, "\"bdf\"", "the family of methods", {"bdf", "adams", "runge-kutta"}},
       {"log2_nodes", K::integer, "12", "quadrature nodes of a risk, as a power of two"},
       {"scramblings", K::integer, "8", "independent node sets, for the error"},
       {"draws", K::integer, "4000", "drawn tasks, where there is no quadrature"},
       {"points", K::integer, "100", "times of a comparison"},
       {"horizon", K::number, "0.1", "distance that ends the common part of two flows"},
       {"restarts", K::integer, "", "starts of icl optimum, 4 unless given"}}};
}

TableDeclaration preset_table() {
  return {"preset",
          "what a published setting says of itself",
          {{"verb", K::text, "", "the verb it belongs to"},
           {"title", K::text, "", "its title"},
           {"provenance", K::text, "", "where it was published"},
           {"expected", K::text, "", "what it should show"}}};
}

const std::vector<TableDeclaration>& tables_once() {
  static const std::vector<TableDeclaration> kTables{
      measure_table(), attention_table(),   query_table(),        reference_table(), sweep_table(),
      lengths_table(), task_table(),        model_table(),        schedule_table(),  init_table(),
      head_table(),    train_table(),       flow_table(),         preset_table(),    matrix_table(),
      prompt_table(),  prompt_bias_table(), prompt_group_table(), tokens_table()};
  return kTables;
}

constexpr std::string_view kRoot[] = {"measure", "attention", "query",  "reference",
                                      "prompt",  "sweep",     "task",   "model",
                                      "train",   "flow",      "preset", "tokens"};

std::vector<std::string> names_of(const TableDeclaration& table) {
  std::vector<std::string> out;
  for (const KeyDeclaration& key : table.keys) out.emplace_back(key.name);
  return out;
}

[[noreturn]] void fail_unknown(const ConfigValue& value, const std::string& path,
                               std::string_view key, const std::vector<std::string>& known) {
  throw ConfigError(value.where() + ": unknown key " + path + ", " + suggest(key, known));
}

void check_table(const TableDeclaration& declared, const ConfigValue& value,
                 const std::string& path);

void check_value(const KeyDeclaration& key, const ConfigValue& value, const std::string& path) {
  if (key.table.empty()) return;  // a wrong type is what its getter says
  if (value.map() != nullptr) check_table(declared_table(key.table), value, path);
  const ConfigValue::Array* array = value.array();
  if (array == nullptr) return;
  for (std::size_t i = 0; i < array->size(); ++i) {
    const ConfigValue& item = (*array)[i];
    if (item.map() != nullptr) {
      check_table(declared_table(key.table), item, path + "[" + std::to_string(i) + "]");
    }
  }
}

void check_table(const TableDeclaration& declared, const ConfigValue& value,
                 const std::string& path) {
  for (const auto& [name, item] : *value.map()) {
    const auto key = std::ranges::find(declared.keys, name, &KeyDeclaration::name);
    if (key == declared.keys.end()) {
      fail_unknown(item, path + "." + name, name, names_of(declared));
    }
    check_value(*key, item, path + "." + name);
  }
}

constexpr std::string_view kMatrices =
    "\n# A matrix is a number x (x times the identity), rows [[..], ..], or a table:\n"
    "#   { kind = \"identity\" }, { kind = \"diagonal\", values = [1, 2] }, { kind = \"kcm\", rho "
    "= 0.5 },\n"
    "#   { kind = \"random\", seed = 1 }, { kind = \"file\", path = \"U.npy\" }; each with scale, "
    "operator_norm, shape.\n";

std::string line_of(const KeyDeclaration& key, bool is_required) {
  const bool is_example = is_required && !key.example.empty();
  std::string value(is_example || key.fallback.empty() ? key.example : key.fallback);
  if (value.empty()) value = "..";
  std::string out = (is_example ? "" : "# ") + std::string(key.name) + " = " + value;
  out.resize(std::max<std::size_t>(out.size() + 2, 28), ' ');
  out += "# " + std::string(key.meaning);
  for (std::size_t i = 0; i < key.words.size(); ++i) {
    out += (i == 0 ? ": \"" : ", \"") + std::string(key.words[i]) + "\"";
  }
  return out + "\n";
}

}  // namespace

std::span<const std::string_view> root_tables() { return kRoot; }

std::span<const TableDeclaration> declared_tables() { return tables_once(); }

const TableDeclaration& declared_table(std::string_view name) {
  for (const TableDeclaration& table : tables_once()) {
    if (table.name == name) return table;
  }
  throw ArgumentError("declared_table: there is no table " + std::string(name));
}

std::span<const VerbDeclaration> declared_verbs() {
  static const std::vector<VerbDeclaration> kVerbs{
      {"limit", {"measure", "query"}, {"attention", "prompt"}},
      {"attend", {"query"}, {"measure", "attention", "reference", "prompt"}},
      {"concentration", {"measure"}, {"attention", "query", "sweep", "prompt"}},
      {"length", {"measure"}, {"attention", "query", "sweep", "prompt"}},
      {"universal", {"measure", "query"}, {"attention", "prompt"}},
      {"scaling", {}, {"measure", "attention", "query", "tokens"}},
      {"icl risk", {"task"}, {"model", "sweep", "train", "flow"}},
      {"icl flow", {"task"}, {"model", "train", "flow"}},
      {"icl train", {"task"}, {"model", "train", "flow"}},
      {"icl compare", {"task"}, {"model", "sweep", "flow"}},
      {"icl optimum", {"task"}, {"model", "sweep", "flow"}}};
  return kVerbs;
}

void check_known_keys(const ConfigValue& root) {
  const std::vector<std::string> known(std::begin(kRoot), std::end(kRoot));
  for (const auto& [name, value] : *root.map()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      fail_unknown(value, name, name, known);
    }
    if (value.map() != nullptr) check_table(declared_table(name), value, name);
  }
}

std::string config_template(std::string_view verb) {
  std::vector<std::string> known;
  for (const VerbDeclaration& one : declared_verbs()) {
    known.emplace_back(one.name);
    if (one.name != verb) continue;
    std::string out = "# Configuration of `esscher " + std::string(verb) +
                      "`. Commented lines show the other keys with their defaults.\n";
    const auto write = [&](std::string_view name, bool is_required) {
      const TableDeclaration& table = declared_table(name);
      out += "\n" + std::string(is_required ? "" : "# ") + "[" + std::string(name) + "]";
      out += "  # " + std::string(table.meaning) + "\n";
      for (const KeyDeclaration& key : table.keys) out += line_of(key, is_required);
    };
    for (const std::string_view name : one.required) write(name, true);
    for (const std::string_view name : one.optional) write(name, false);
    return out.append(kMatrices);
  }
  throw ArgumentError("config: there is no configuration of " + std::string(verb) + ", " +
                      suggest(verb, known));
}

}  // namespace esscher
