// Matrices and tokens from files in any of these formats:
//
//   tokens.npy   tokens.csv (.txt .tsv)   model.safetensors#tensor   arrays.npz#name
//
// Without #name an archive must hold exactly one array.
#pragma once

#include <filesystem>

#include "esscher/base/linalg.h"

namespace esscher {

// Throws a FileError that names file and position if an element is not finite or if there is none.
// A 1-d array of n numbers becomes [n,1].
Matrix read_matrix(const std::filesystem::path& path);

}  // namespace esscher
