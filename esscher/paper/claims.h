// A statement of the paper as a claim for programs: what is said, under which hypotheses, what was
// measured, by which tolerance it was judged, the verdict, the command that makes it again, and the
// controls, which are the same check where the statement is false and must fail.
//
//   {"id", "title", "text", "hypotheses": [{"text", "holds", "values": {name: number}}],
//    "tolerance": {"relative", "standard_errors"}, "verdict": {"status", "text"},
//    "numbers": [{"what", "value", "error", "expected", "expected_error", "source", "tolerance",
//                 "agrees", "factor_noticed"}],
//    "conditions": [{"broken_if", "holds"}],
//    "negative_controls": [as numbers, with "agrees": false], "command"}
#pragma once

#include "esscher/json/json.h"
#include "esscher/paper/section.h"

namespace esscher::paper {

Json claim_json(const SectionReport& made);

}  // namespace esscher::paper
