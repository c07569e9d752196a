// A row for the tests of pages and of their downloads.
#pragma once

#include <cstdint>
#include <string>

namespace esscher::testing {

struct DemoRow {
  std::int64_t L = 0;
  std::string metric;
  double value = 0;
  double std_error = 0;
  std::string engine = "sampled";

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("L", row.L, "tokens", "length of the prompt");
    column("metric", row.metric, "", "what is measured");
    column("value", row.value, "", "its value");
    column("std_error", row.std_error, "", "its standard error");
    column("engine", row.engine, "", "how prompts were averaged");
  }
};

}  // namespace esscher::testing
