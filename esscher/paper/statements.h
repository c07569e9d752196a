// The statements of [BB26] (docs/references.md), each made in the file of its name.
// large_prompts.cc puts them in order.
#pragma once

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

}  // namespace esscher::paper
