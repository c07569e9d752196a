// What a JSON text of ours must keep to, checked before it is parsed: the grammar of RFC 8259, no
// text after the value, no key twice in one object, nesting at most 64 deep.
#pragma once

#include <string_view>

namespace esscher {

// Throws FileError that starts with `where` (a file name) and says what is wrong.
void check_strict_json(std::string_view where, std::string_view text);

}  // namespace esscher
