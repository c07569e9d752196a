// Layout of run.sqlite, its version, and the way up from older versions.
//
//   meta        name, value                        verb, seed, config, created, check
//   layouts     id, columns                        declared columns of rows, as JSON (json/rows.h)
//   cells       ordinal, key, layout               declared before the work starts, in study order
//   results     ordinal, rows, digest              rows: text of json/rows.h, a JSON array of objects
//   provenance  ordinal, session, seconds, engine  session that made a cell, how, and how long
//   sessions    id, started, version, commit_id, target, host, threads, ranks
//   documents   name, json, digest                 e.g. "report"
//
// SQLite does not notice a flipped bit inside a value; the digests do. That of a result is over the
// key, the rows and the columns.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "esscher/store/database.h"

namespace esscher {

inline constexpr int kSchemaVersion = 3;

// Fills an empty database.
void create_schema(Database& database);

// Raises an older schema to kSchemaVersion in one transaction; does nothing for the current one.
void upgrade_schema(Database& database);

// Opens a run for reading after checking everything that can be wrong with the file: missing,
// empty, truncated, damaged, not a run, schema from the future. Throws FileError with the reason;
// the file is never changed. An older schema is upgraded in a copy in memory.
std::unique_ptr<Database> open_checked(const std::filesystem::path& file);

// 64-bit FNV-1a of the parts, each closed by its length so that ("ab","c") != ("a","bc").
std::int64_t digest(std::initializer_list<std::string_view> parts);

}  // namespace esscher
