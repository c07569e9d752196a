#include "esscher/store/chain_run.h"

#include <chrono>
#include <optional>
#include <string>

#include "esscher/json/training.h"

namespace esscher {

constexpr std::int64_t kBayesReplicates = 1000;

std::vector<TrainRow> run_chain(Chain& chain, Run* run,
                                const std::function<void(const Chain&)>& after) {
  if (run != nullptr) {
    run->declare(chain.keys(), columns_of<TrainRow>());
    if (const std::optional<Json> state = run->document("state")) chain.restore(state_of(*state));
  }
  if (after) after(chain);
  std::vector<TrainRow> rows;
  std::vector<std::string> finished;
  for (std::size_t k = 0; k < chain.keys().size(); ++k) {
    const std::string& key = chain.keys()[k];
    if (run == nullptr || !run->done(key)) {
      if (chain.trainer().status() == TrainStatus::diverged) break;
      const auto start = std::chrono::steady_clock::now();
      const std::vector<TrainRow> part = chain.advance(k);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (run != nullptr) {
        run->set_document("state", state_json(chain.state()));
        run->commit(key, part, took.count());
      } else {
        rows.insert(rows.end(), part.begin(), part.end());
      }
      if (after) after(chain);
    }
    finished.push_back(key);
  }
  return run == nullptr ? rows : run->rows<TrainRow>(finished);
}

std::vector<RiskRow> risks_beside(const TrainResult& result, const TrainConfig& config) {
  std::vector<RiskRow> rows{result.final_risk};
  if (config.layer) {
    const ReferenceRisks found = reference_risks(config.layer->task, config.length, config.risk);
    rows.push_back(risk_row(config.length, "bayes", found.bayes));
    if (found.bayes_is_bound()) rows.back().bound = true;
    rows.back().bayes_by = found.bayes_by;
    rows.push_back(risk_row(config.length, "affine", found.affine));
    rows.push_back(risk_row(config.length, "linear", found.linear));
    return rows;
  }
  if (!config.task.is_regression()) return rows;
  const LinearRegressionTask& task = config.task.regression();
  rows.push_back(bayes_row(task, config.length, kBayesReplicates, config.risk));
  if (!config.length.is_infinite()) {
    rows.push_back(bayes_row(task, Length::infinity(), kBayesReplicates, config.risk));
  }
  return rows;
}

}  // namespace esscher
