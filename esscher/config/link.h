// The keys link and coefficients of a single-index label.
#pragma once

#include "esscher/config/table.h"
#include "esscher/measure/link.h"

namespace esscher {

Link read_link(const Table& table);

}  // namespace esscher
