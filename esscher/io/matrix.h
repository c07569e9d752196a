// Matrices and tokens from files, whatever the format.
//
//   tokens.npy   tokens.csv (.txt .tsv)   model.safetensors#tensor   arrays.npz#name
//
// Without #name an archive must hold exactly one array.
#pragma once

#include <filesystem>

#include "esscher/base/linalg.h"

namespace esscher {

// Every element finite, at least one of them; a 1-d array of n numbers is [n,1]. FileError names
// file and position.
Matrix read_matrix(const std::filesystem::path& path);

}  // namespace esscher
