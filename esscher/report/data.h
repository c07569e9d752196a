// Data of a report page: what is drawn is thinned, what can be downloaded is whole.
#pragma once

#include <set>
#include <string>

#include "esscher/json/json.h"
#include "esscher/report/page.h"
#include "esscher/store/run.h"

namespace esscher {

// At most about `limit` rows of a sheet. Rows are grouped by their texts and truths (the series),
// each group keeps its first and last row and an even choice between, so that no curve disappears
// and no end is cut.
Sheet thinned(const Sheet& sheet, std::size_t limit);

// Names of the datasets a Vega-Lite specification refers to, at any depth.
std::set<std::string> dataset_names(const Json& spec);

// The page for a run that has stored none.
Page generic_page(const Run& run);

}  // namespace esscher
