// Files of web/ inside the library, put there at build time.
#pragma once

#include <string_view>

namespace esscher {

std::string_view report_css();
// The charts of web/charts/, then what a report page does with them.
std::string_view charts_js();
std::string_view report_js();
// These are vega, vega-lite and vega-embed. They are empty if npm was missing at build time.
std::string_view vega_js();

}  // namespace esscher
