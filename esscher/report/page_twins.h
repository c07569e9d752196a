// The report of `esscher icl compare`: limiting risks, twins over time, gaps of their gradients.
#pragma once

#include <string>

#include "esscher/report/page.h"
#include "esscher/training/twin_rows.h"

namespace esscher {

// `rerun` is the command that made the run, shown with the figures.
Page twins_page(const CompareResult& result, const std::string& rerun);

}  // namespace esscher
