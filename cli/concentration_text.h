// A concentration study as people read it: a summary, then one table per metric.
#pragma once

#include <string>
#include <vector>

#include "esscher/concentration/study.h"

namespace esscher::cli {

// The regime, the constant, the exponent with its limit, and the length for 1 %.
std::string summary_text(const StudyResult& result, const Reach& one_percent);

// D(L) of every metric and the weights of the softmax over L. Columns that hold nothing are left
// out, the others are explained once, at the end.
std::string curves_text(const StudyResult& result);

// The exponent against sigma; nothing for no points.
std::string sigma_text(const std::vector<SigmaPoint>& points);

}  // namespace esscher::cli
