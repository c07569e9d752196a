// Is this head linear in disguise, and from which prompt length on? Each query is read with the
// prompt it really had: its softmax output, its surrogates (heads/surrogate.h) and the exact
// Gaussian control (heads/control.h). The numbers are those of heads/diagnosis.h.
//
//   const std::vector<HeadDiagnosis> rows = diagnose(load_heads("model.safetensors"));
#pragma once

#include <vector>

#include "esscher/base/cells.h"
#include "esscher/heads/diagnosis.h"
#include "esscher/heads/head.h"
#include "esscher/heads/options.h"
#include "esscher/heads/surrogate.h"

namespace esscher {

// Throws ArgumentError naming the head if an option means nothing for it or its scores overflow.
HeadDiagnosis diagnose(const Head& head, const HeadOptions& options = {});

// One cell per head, named after it, with one row.
Cells<HeadDiagnosis> diagnosis_cells(std::vector<Head> heads, const HeadOptions& options = {});

// Several heads at a time, one per thread.
std::vector<HeadDiagnosis> diagnose(const std::vector<Head>& heads,
                                    const HeadOptions& options = {});

// The surrogates over the whole prompt, for export: the Gaussian limit, then one per number of
// components that the keys allow.
std::vector<Surrogate> fit_surrogates(const Head& head, const HeadOptions& options = {});

}  // namespace esscher
