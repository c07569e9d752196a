// The keys that softmax must keep to answer the next query of a head, where rules (heads/rules.h) hide
// some of the prompt, and what the moments of the seen keys take.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

struct Head;
enum class Tail;

struct KeptKeys {
  Index count = 0;  // keys that some query sees; of a sliding window the last ones only
  // A key that one query sees is hidden from a later one, as behind a sliding window. Moments of the
  // seen keys must then be freed of keys again, and those keys must be kept for it.
  bool forgotten = false;
};

KeptKeys kept_keys(const Head& head);

// The first keys of a prompt do not stay in a sliding window: all exact keys of such a head are its
// last ones.
Index kept_sinks(const Head& head, Index sinks);

// Numbers to keep for a window of w exact keys with a tail, and its multiply-adds per query.
Index window_state(const Head& head, const KeptKeys& kept, Index w, Tail tail);
Index window_multiply_adds(const Head& head, const KeptKeys& kept, Index w, Tail tail);

}  // namespace esscher
