// The configuration as a JSON schema (draft 2020-12), made from the declarations of config/keys.h, for
// editors that complete and check TOML.
#pragma once

#include "esscher/json/json.h"

namespace esscher {

Json config_schema();

}  // namespace esscher
