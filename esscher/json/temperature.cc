#include "esscher/json/temperature.h"

#include "esscher/json/rows.h"

namespace esscher {

Json temperature_document(const std::vector<TemperatureRow>& rows) {
  Json grid = Json::array(), best = Json::array();
  const std::vector<Column> columns = columns_of<TemperatureRow>();
  const auto keep = [&](const Json& row, bool is_best) {
    Json out = Json::object();
    for (const auto& [key, value] : row.items()) {
      const bool of_best = key == "factor_std_error" || key == "risk_before" || key == "gain" ||
                           key == "gain_std_error" || key == "limit_factor";
      if (key != "what" && (is_best || !of_best)) out[key] = value;
    }
    return out;
  };
  for (const TemperatureRow& row : rows) {
    const bool is_best = row.what == TemperatureRowKind::best;
    (is_best ? best : grid).push_back(keep(record_json(columns, record_of(row)), is_best));
  }
  return {{"rows", std::move(grid)},
          {"best", std::move(best)},
          {"risk_is", "half the mean squared error, target noise included"}};
}

}  // namespace esscher
