#include "esscher/base/version.h"

namespace esscher {

const char* build_commit() { return ESSCHER_COMMIT; }

}  // namespace esscher
