// The table of contents: the statements of the paper in the order of the report.
#pragma once

#include <span>
#include <string_view>

#include "esscher/paper/section.h"

namespace esscher::paper {

Statement lemma_2_1();    // Gaussian tokens make softmax attention linear
Statement almost_sure();  // one growing prompt converges
Statement prop_3_1();     // outputs concentrate
Statement prop_3_4();     // gradients in V and U concentrate
Statement stability();    // gradients stay close along training
Statement theorem_4_3();  // long prompts train as well as infinite ones
Statement theorem_5_1();  // softmax attention learns linear regression
Statement transfer();     // what linear attention learns, softmax attention learns
Statement experiment();   // the authors' training experiment

std::span<const Statement> statements();
// Throws ArgumentError naming the ids there are.
const Statement& statement(std::string_view id);

}  // namespace esscher::paper
