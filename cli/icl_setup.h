// What the verbs `icl risk|flow|train|compare|optimum` share: where the configuration comes from, and models.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/globals.h"
#include "esscher/report/page.h"
#include "esscher/risk/readout.h"
#include "esscher/risk/risk_rows.h"
#include "esscher/store/run.h"

namespace esscher::cli {

struct IclOptions {
  std::string preset;               // --preset NAME
  std::vector<std::string> models;  // --model RUN or FILE.json, any number
  std::string lengths;              // --length 10,100,inf
  std::int64_t extend = 0;          // --extend STEPS of icl train; 0: not given
  // Of icl risk: --temperature T,.. or --factor F,.., and --shift KIND=X, any number.
  std::vector<double> temperatures, factors;
  std::vector<std::string> shifts;

  [[nodiscard]] bool asks_temperature() const {
    return !temperatures.empty() || !factors.empty() || !shifts.empty();
  }
};

// --preset, the configuration of the first --model RUN, or --config; then every --set.
Config icl_config(const Globals& globals, const IclOptions& options);

// train.length from a --length that names one length, sweep.lengths from one that names several.
void set_length(Config& config, const IclOptions& options);
void set_lengths(Config& config, const IclOptions& options);

// The heads of --model: the document "model" of a run, or a JSON file (heads_of in json/training.h).
std::vector<Readout> load_model(const std::string& model);
// The layer of --model, as model.init and model.kinds.
void set_layer(Config& config, const std::string& model);
// The length of the prompts it was trained on: that of its document, or of the configuration of its
// run.
std::optional<Length> trained_length(const std::string& model);

// The page as the report of the run.
void keep_page(Run& run, const Page& page);

// The command that made a run, shown in its report.
std::string rerun(const Globals& globals, const char* verb, const IclOptions& options);

void icl_risk(const Globals& globals, const IclOptions& options);
// icl risk over a grid of temperatures; `problem` has the heads and the lengths.
void icl_temperature(const Globals& globals, const IclOptions& options, const Config& config,
                     const RiskProblem& problem);
void icl_flow(const Globals& globals, const IclOptions& options);
void icl_layer_flow(const Globals& globals, const IclOptions& options, const Config& config);
void icl_train(const Globals& globals, const IclOptions& options);
void icl_compare(const Globals& globals, const IclOptions& options);
void icl_layer_compare(const Globals& globals, const IclOptions& options, const Config& config);
void icl_optimum(const Globals& globals, const IclOptions& options);

}  // namespace esscher::cli
