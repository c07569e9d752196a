// `esscher attend --head`: a real head on its own queries, next to one of its surrogates.
#pragma once

#include <cstdint>
#include <string>

#include "cli/globals.h"

namespace esscher::cli {

struct AttendHeadOptions {
  std::string head;             // FILE#NAME
  std::string surrogate;        // FILE made by `esscher heads --export`
  std::int64_t components = 1;  // 1: the Gaussian limit
  std::int64_t queries = 128;
};

void attend_head(const Globals& globals, const AttendHeadOptions& options);

}  // namespace esscher::cli
