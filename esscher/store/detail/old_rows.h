// Rows of runs that a program with schema version 2 wrote, made into what the same verbs write now.
//
//   concentration   bias -> bias2, cov "x y z" -> [x,y,z], null -> "inf" (asymptotic) or "nan"
//   icl *           U_0_0, U_0_1, .. -> U [[..],..], r_0, .. -> r [..]; the heads head0_, head1_, ..
//                   one below the other
//   heads           detail, a text that held the whole diagnosis -> its columns
//   paper           null -> "inf" (constant)
//
// Another null was a number that is not finite and becomes "nan", except where the row type of today
// leaves the value absent.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "esscher/base/columns.h"
#include "esscher/json/json.h"

namespace esscher {

void modernise(std::string_view verb, Json& row);

// Types that values alone do not tell: lengths of which all are finite look like integers, and
// tables without rows like arrays.
std::map<std::string, ColumnType> old_types(std::string_view verb);

}  // namespace esscher
