// A page as document "report" of a run, so that `esscher report` can render it again.
//
//   {"title", "lead",
//    "sections": [{"id", "title", "statement", "hypotheses": [..],
//                  "verdict": {"status": "holds|holds-fitted|fails|info", "text"},
//                  "text", "formulas": [MathML], "rerun": "command",
//                  "figures": [{"id", "spec", "caption"}],      spec: Vega-Lite, data by name
//                  "tables": [{"title", "columns": [..], "rows": [[..] | {..}]}]}],
//    "datasets": {"name": [{..}, ..]}}
//
// Everything but the title may be left out. Numbers that are not finite become null.
#pragma once

#include "esscher/json/json.h"
#include "esscher/report/page.h"

namespace esscher {

Json page_json(const Page& page);
Json section_json(const Section& section);

// Throws ArgumentError naming the key if the document is malformed.
Page page_from_json(const Json& document);

// [{"column": value, ..}, ..], and back: columns in order of first appearance.
Json sheet_json(const Sheet& sheet);
Sheet sheet_from_json(const Json& rows);

}  // namespace esscher
