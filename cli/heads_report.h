// The report of `esscher heads` from its rows (heads/diagnose.h to_json).
#pragma once

#include <vector>

#include "esscher/json/json.h"

namespace esscher::cli {

Json heads_report(const std::vector<Json>& rows);

}  // namespace esscher::cli
