// Streams over mapped files larger than memory: pages that were read stay resident until the system
// needs them, and count as the program's until then. Dropping them keeps that count small.
#pragma once

#include "esscher/io/file.h"

namespace esscher {

// Gives back the whole pages inside `part`; reading them again brings them back from the file. What
// does not lie in `file` is left alone: memory that is not mapped would lose its content.
void drop_pages(const MappedFile& file, Bytes part);

}  // namespace esscher
