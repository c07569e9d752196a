// The report of `icl risk --model RUN,..`: models that were trained at some lengths, tested at others.
#pragma once

#include <vector>

#include "esscher/report/page.h"
#include "esscher/risk/risk_rows.h"

namespace esscher {

// Rows without `trained` are references. There is at least one with it.
Page risk_page(const std::vector<RiskRow>& rows);

}  // namespace esscher
