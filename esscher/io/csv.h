// Numbers as text, one row per line. The separator is the first of ';', ',', tab and spaces that
// the first row contains. Lines that start with '#' and blank lines are skipped. A first row
// without any number is a header. Every other field must be a finite number, and all rows must have
// the same length; the FileError names line and column.
#pragma once

#include <string>
#include <string_view>

#include "esscher/base/linalg.h"
#include "esscher/io/file.h"

namespace esscher {

Matrix parse_csv(std::string_view where, Bytes bytes);

// Writes the shortest digits that read back as the same doubles.
std::string encode_csv(const MatrixView& values);

}  // namespace esscher
