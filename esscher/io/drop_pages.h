// Reading mapped files that are larger than memory. Pages that were read stay in memory, and count
// as memory of the program, until the system needs them. Dropping them keeps that count small.
#pragma once

#include "esscher/io/file.h"

namespace esscher {

// Gives back the whole pages inside `part`. Reading them again brings them back from the file.
// Bytes that do not lie in `file` are left alone, because memory that is not mapped would lose its
// content.
void drop_pages(const MappedFile& file, Bytes part);

}  // namespace esscher
