// The setting of a study in a sentence or two: the law of the tokens, the dimension, the layer, the
// task. A page shows it below its headline.
#pragma once

#include <string>

#include "esscher/base/length.h"
#include "esscher/concentration/problem.h"
#include "esscher/report/page.h"
#include "esscher/task/context.h"
#include "esscher/task/task.h"
#include "esscher/training/trainer.h"

namespace esscher {

// "0.5 I", "diag(1, 0.5)", or "a 4 × 4 matrix of norm 1.2".
std::string matrix_text(const Matrix& M);

// "single_index" as a word of a sentence, "single-index".
std::string task_words(std::string type);

// Tokens, queries and layer of a concentration study.
std::string setting_of(const Problem& problem);

// What is learned in context.
std::string setting_of(const AnyTask& task);
std::string setting_of(const ContextTask& task);

// The same, and how many prompts of which length a step of training draws.
std::string training_setting(const TrainConfig& config);

// The page with this setting before what it says itself.
Page with_setting(const std::string& setting, Page page);

}  // namespace esscher
