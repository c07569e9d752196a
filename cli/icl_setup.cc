#include "cli/icl_setup.h"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "esscher/base/error.h"
#include "esscher/config/icl.h"
#include "esscher/config/layer.h"
#include "esscher/io/file.h"
#include "esscher/json/training.h"
#include "esscher/report/report.h"

namespace esscher::cli {

namespace fs = std::filesystem;

Config icl_config(const Globals& globals, const IclOptions& options) {
  std::error_code unreadable;
  for (const std::string& model : options.models) {
    if (fs::exists(model, unreadable)) continue;
    throw FileError("--model is '" + model +
                    "', expected a run of icl flow or icl train, or its JSON: no such file");
  }
  const bool model_is_run = !options.models.empty() && fs::is_directory(options.models[0]);
  if (!options.preset.empty() || !model_is_run || !globals.config.empty()) {
    return globals.load_config(options.preset);
  }
  return globals.assigned(Config::load(fs::path(options.models[0]) / "config.toml"));
}

namespace {

// As TOML writes it. The message names the option, what it holds and what it may hold.
std::string length_toml(const std::string& text, const IclOptions& options, const char* expected) {
  try {
    const Length length = Length::parse(text);
    return length.is_infinite() ? "\"inf\"" : length.text();
  } catch (const Error&) {
    throw ArgumentError("--length is '" + options.lengths + "', expected " + expected);
  }
}

// What --model names: the document "model" of a run, or a JSON file.
Json model_document(const std::string& model) {
  if (!fs::is_directory(model)) return parse_json(model, read_text(model));
  const std::optional<Json> document = Run::open(model).document("model");
  if (document) return *document;
  throw FileError("--model is '" + model + "', expected a finished run of icl flow or icl train");
}

}  // namespace

void set_length(Config& config, const IclOptions& options) {
  if (options.lengths.empty()) return;
  config.set("train.length=" +
                 length_toml(options.lengths, options, "one length, such as 100, 1e6 or inf"),
             "--length " + options.lengths);
}

void set_lengths(Config& config, const IclOptions& options) {
  if (options.lengths.empty()) return;
  std::string list;
  std::istringstream parts(options.lengths);
  for (std::string part; std::getline(parts, part, ',');) {
    list += (list.empty() ? "" : ", ") +
            length_toml(part, options, "lengths with commas between them, such as 10,1e6,inf");
  }
  config.set("sweep.lengths=[" + list + "]", "--length " + options.lengths);
}

std::vector<Readout> load_model(const std::string& model) {
  return heads_of(model_document(model), model);
}

void set_layer(Config& config, const std::string& model) {
  const Json document = model_document(model);
  const Json& layer = document.contains("parameters") ? document["parameters"] : document;
  std::string init = "model.init={kind=\"dense\"";
  for (const char* key : {"U", "V", "W"}) {
    if (!layer.contains(key) || !layer.contains("kinds")) {
      throw FileError("--model is '" + model +
                      "', expected a layer with \"kinds\", \"U\", \"V\" and \"W\", as icl flow and "
                      "icl train make on task.type = \"" +
                      std::string(name(read_task_type(config.root()))) + "\"");
    }
    init += std::string(",") + key + "=" + layer[key].dump();
  }
  const std::string door = "--model " + model;
  config.set("model.kinds=" + layer["kinds"].dump(), door);
  config.set(init + "}", door);
}

std::optional<Length> trained_length(const std::string& model) {
  const Json document = model_document(model);
  if (const auto L = document.find("L"); L != document.end()) {
    return L->is_string() ? Length::parse(L->get<std::string>()) : Length(L->get<std::int64_t>());
  }
  if (!fs::is_directory(model)) return std::nullopt;
  return read_length(Config::load(fs::path(model) / "config.toml").root());
}

void keep_page(Run& run, const Page& page) {
  set_page(run, page);
  if (run.is_writer()) write_report(run, page, run.directory() / "report.html");
}

std::string rerun(const Globals& globals, const char* verb, const IclOptions& options) {
  std::string text = fmt::format("esscher {}", verb);
  if (!options.preset.empty()) text += " --preset " + options.preset;
  if (!globals.config.empty()) text += " --config " + globals.config;
  if (!options.lengths.empty()) text += " --length " + options.lengths;
  for (const std::string& set : globals.set) text += " --set '" + set + "'";
  if (globals.has_seed) text += fmt::format(" --seed {}", globals.seed);
  return text;
}

}  // namespace esscher::cli
