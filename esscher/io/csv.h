// Numbers as text: one row per line, separated by ';', ',', tab or spaces (the first of these that
// the first row contains). Lines starting with '#' and blank lines are skipped; a first row without
// any number is a header. Every other field must be a finite number, every row of one length; the
// FileError names line and column.
#pragma once

#include <string>
#include <string_view>

#include "esscher/base/linalg.h"
#include "esscher/io/file.h"

namespace esscher {

Matrix parse_csv(std::string_view where, Bytes bytes);

// Shortest digits that read back as the same doubles.
std::string encode_csv(const MatrixView& values);

}  // namespace esscher
