// The section of one head in the report of `esscher heads`, with the data of its figures.
#pragma once

#include <string>

#include "esscher/heads/diagnosis.h"
#include "esscher/report/page.h"

namespace esscher {

// Adds the section `id` and the datasets "prefix-id", "scores-id", "longer-id" and "window-id" to the page.
void add_head_section(const HeadDiagnosis& head, const std::string& id, Page& page);

// Three digits: more are not worth reading in a table. The data keep them all.
Value three_digits(double x);
Value three_digits(const std::optional<double>& x);

}  // namespace esscher
