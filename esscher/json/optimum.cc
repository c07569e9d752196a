#include "esscher/json/optimum.h"

#include "esscher/json/rows.h"

namespace esscher {

Json optimum_document(const std::vector<OptimumRow>& rows) {
  Json list = Json::array();
  for (const OptimumRow& row : rows) list.push_back(row_json(row));
  const TaskLoss loss = rows.empty() ? TaskLoss::squared : rows[0].loss.value_or(TaskLoss::squared);
  return {{"rows", std::move(list)},
          {"risk_is", std::string(mean_of(loss)) +
                          (loss == TaskLoss::squared ? ", summed over coordinates" : "")}};
}

}  // namespace esscher
