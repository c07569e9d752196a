// The report of `esscher heads`: an overview of all heads, then one section per head.
#pragma once

#include <vector>

#include "esscher/heads/diagnosis.h"
#include "esscher/report/page.h"

namespace esscher {

// There must be at least one head.
Page heads_page(const std::vector<HeadDiagnosis>& heads);

// The badge of a head: "holds" where it is linear here, "fails" where nothing replaces it.
Verdict head_badge(const HeadDiagnosis& head);

// What a verdict says without its numbers: the colour of a head in the overview.
std::string verdict_group(HeadVerdict verdict);

// "4 heads: 1 is linear from a longer prompt, 3 need components."
std::string count_sentence(const std::vector<HeadDiagnosis>& heads);

}  // namespace esscher
