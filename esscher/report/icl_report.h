// The reports of the in-context learning lab, from the rows of a run
// (training/study.h) alone.
#pragma once

#include <string>
#include <vector>

#include "esscher/json/json.h"

namespace esscher {

// `rerun` is the command that made the run, shown with the figures.
Json flow_report(const std::vector<Json>& rows, const std::string& rerun);
Json compare_report(const std::vector<Json>& rows, const std::string& rerun);

// For a training run: rows {"what":"loss","step","loss","smooth","std_error"},
// {"what":"checkpoint","step","U_i_j","r_i"} and
// {"what":"risk","L","model","risk","std_error"}.
Json train_report(const std::vector<Json>& rows, const std::string& rerun);

}  // namespace esscher
