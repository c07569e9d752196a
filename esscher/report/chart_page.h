// One chart as a page of its own, for notebooks: it needs no network and no file beside it.
#pragma once

#include <string>
#include <string_view>

namespace esscher {

// The page draws the specification (report/vega_lite.h, with its data inside) in the light or dark
// colours of the reader, again when its width changes, and tells the frame that holds it its height.
// Throws FileError if `spec` is not a JSON object. Without charts (report_has_charts) it says so.
std::string chart_page(std::string_view spec);

}  // namespace esscher
