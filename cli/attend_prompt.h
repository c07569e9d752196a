// esscher attend with a [prompt]: tokens as they are, beside groups that are averaged over.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cli/globals.h"
#include "cli/rows.h"
#include "esscher/measure/any_measure.h"
#include "esscher/measure/empirical.h"

namespace esscher::cli {

struct AttendPromptOptions {
  std::string length;  // --length; empty: the tokens that are given or counted
  RowRequest rows = {};
};

// What tokens that are given are compared with, and where it comes from.
struct AttendReference {
  AnyMeasure measure;
  std::string origin;
};
using FitReference = std::function<AttendReference(const Empirical& tokens)>;

// Tokens of [measure], if it is empirical, stand behind those of prompt.given, as they are. `fit` is
// asked where no token is drawn, or where there is a table [reference].
void attend_prompt(const Globals& globals, const Config& config, const AttendPromptOptions& options,
                   const FitReference& fit);

}  // namespace esscher::cli
