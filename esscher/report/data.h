// Data of a report page: what is drawn is thinned, what can be downloaded is whole.
#pragma once

#include <set>
#include <string>

#include "esscher/json/json.h"
#include "esscher/report/page.h"
#include "esscher/store/run.h"

namespace esscher {

// Keeps at most about `limit` rows of a sheet. Rows are grouped by their texts and truths, which are
// the series. Each group keeps its first and last row and an even choice between, so that no curve
// disappears and no end is cut.
Sheet thinned(const Sheet& sheet, std::size_t limit);

// Lists the names of the datasets that a Vega-Lite specification refers to, at any depth.
std::set<std::string> dataset_names(const Json& spec);

// Makes the page for a run that has stored none.
Page generic_page(const Run& run);

}  // namespace esscher
