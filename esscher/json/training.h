// The documents of `icl risk|flow|train|compare --json`, from typed results, and the state of a
// training run as a document of its run.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "esscher/json/json.h"
#include "esscher/training/chain.h"
#include "esscher/training/flow_rows.h"
#include "esscher/training/twin_rows.h"

namespace esscher {

// {"rows": [{"L","model","risk","std_error","engine","n"}], "risk_is"}
Json risk_document(const std::vector<RiskRow>& rows);

// The summary, {"model","L","status","t","risk",..}, with "U", "V" and "path":
// [{"t","risk","gradient_norm","distance"}]. A layer has the keys of layer_json, and "task", "family",
// "affine", "linear" and "bound" instead of what only regression has.
Json flow_document(const FlowRecord& flow);

// {"kinds", "U", "V", "W"} as model.init takes them: matrices, or lists of them for several heads.
Json layer_json(const Layer& layer);

// {"rows": one summary per twin, "lengths": L(eps), "path": [..]}
Json compare_document(const CompareResult& result);

// {"steps","status","final_risk","loss": [{"step","loss","std_error"}],"loss_is","parameters"}; a layer
// has "task" too, and the keys of layer_json in its parameters
Json train_document(const TrainResult& result);

// {"U","V"} of one head, {"heads": [{"U","V"},..]} of several. The last row of V is r, the rest is 0.
Json heads_json(std::span<const Readout> heads);

// The heads of a model document: an object with "U" [D,D] and "V" [.,D] (last row acts), or with a
// list of these in "heads", or with either in "parameters": what a flow or a training leaves.
// Throws FileError naming the source.
std::vector<Readout> heads_of(const Json& document, const std::string& source);

// Numbers read back as the same doubles. state_of throws FileError if something is missing; it reads
// states of version 0.1 too, which kept sums of losses instead of their moments.
Json state_json(const TrainState& state);
TrainState state_of(const Json& document);

}  // namespace esscher
