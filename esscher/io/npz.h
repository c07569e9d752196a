// NumPy .npz files: a zip archive of .npy members, stored or deflated (numpy.savez and
// savez_compressed). Checksums are verified. A member that claims to inflate to more than deflate
// can produce from its compressed size is refused before anything is allocated.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "esscher/io/array.h"
#include "esscher/io/file.h"

namespace esscher {

// All arrays, by name without ".npy". Stored members point into `bytes`, inflated ones own their
// bytes.
std::map<std::string, Array> parse_npz(std::string_view where, Bytes bytes);

// The bytes of an uncompressed .npz file. Throws ArgumentError from 4 GiB or 65535 arrays on, where
// zip needs another format.
std::vector<std::byte> encode_npz(const std::map<std::string, Array>& arrays);

}  // namespace esscher
