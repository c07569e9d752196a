#include "esscher/json/optimum.h"

#include "esscher/json/rows.h"

namespace esscher {

Json optimum_document(const std::vector<OptimumRow>& rows) {
  Json list = Json::array();
  for (const OptimumRow& row : rows) list.push_back(row_json(row));
  return {{"rows", std::move(list)},
          {"risk_is", "half the mean squared error, summed over coordinates"}};
}

}  // namespace esscher
