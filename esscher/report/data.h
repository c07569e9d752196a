// Data of a report page: what is drawn is thinned, what can be downloaded is whole.
#pragma once

#include <set>
#include <string>

#include "esscher/json/json.h"
#include "esscher/store/run.h"

namespace esscher {

// At most about `limit` rows of a dataset [{..},..]. Rows are grouped by their text and boolean
// columns (the series), each group keeps its first and last row and an even choice between, so
// that no curve disappears and no end is cut.
Json thinned(const Json& rows, std::size_t limit);

// Names of the datasets a Vega-Lite specification refers to, at any depth.
std::set<std::string> dataset_names(const Json& spec);

// The document for a run that has stored none.
Json generic_report(const Run& run);

}  // namespace esscher
