// Text into HTML, safely: whatever the data says, it stays text.
#pragma once

#include <string>
#include <string_view>

#include "esscher/base/columns.h"

namespace esscher {

// Writes & < > " ' as entities, for element content and quoted attributes.
std::string escape_html(std::string_view text);

// Blank lines separate paragraphs, backticks mark `code`, and the rest is escaped.
std::string prose(std::string_view text);

// Does the same inside one paragraph, without <p>.
// Numbers such as 1e6 and 2.5e-07 with powers of ten: "10⁶", "2.5×10⁻⁷". Other words stay as they are.
std::string readable_numbers(std::string_view text);

std::string prose_inline(std::string_view text);

// JSON text that may stand inside <script type="application/json">: "<" is written as \u003c, so
// that no string can close the element.
std::string script_json(std::string_view json);

// MathML as it is if it has only presentation elements and harmless attributes, else escaped text.
std::string math_html(std::string_view mathml);

// A value as people read it: 6 significant digits, integers as they are, "–" for what is absent or
// no number.
std::string cell_text(const Value& value);

// Compresses by gzip, then encodes as base64. The DecompressionStream of a browser undoes it.
std::string packed(std::string_view bytes);

}  // namespace esscher
