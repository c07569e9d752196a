#include "esscher/json/scaling.h"

#include "esscher/json/rows.h"

namespace esscher {

Json to_json(const std::vector<ScalingRow>& rows, const std::vector<ScalingEvent>& events,
             const std::vector<RetrievalLength>& retrieval) {
  return {{"rows", rows_json(rows)},
          {"events", rows_json(events)},
          {"retrieval", rows_json(retrieval)}};
}

Json to_json(Kept kept, double train, const std::vector<KeptFactor>& factors,
             const std::vector<FamilyFit>& families) {
  return {{"keep", name(kept)},
          {"train", train},
          {"rows", rows_json(factors)},
          {"families", rows_json(families)}};
}

}  // namespace esscher
