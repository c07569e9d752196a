// The scores of one query of a head as a law (scaling/score_model.h): tokens are drawn from the pairs
// of key and value that the query sees, each as likely as any other.
//
//   s = scale <q, k>,  (k, v) uniform among the keys l < prompt_end(query)
//
// Prompts of this law repeat keys. Their largest score is that of the head's own prompt, at every
// length, so that a prompt far longer than the head's says what repetition does and not what new keys
// would do; heads/score_scale.h compares both with what longer prompts of the head show.
#pragma once

#include "esscher/heads/head.h"
#include "esscher/scaling/score_model.h"

namespace esscher {

// Throws ArgumentError naming the head unless the query is one of its.
ScoreModel head_scores(const Head& head, Index query);

}  // namespace esscher
