#include "esscher/store/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/io/npz.h"
#include "esscher/store/database.h"
#include "esscher/store/exec.h"
#include "esscher/store/export.h"
#include "esscher/store/files.h"
#include "esscher/store/lock.h"
#include "esscher/store/merge.h"
#include "esscher/store/schema.h"
#include "tests/store/temporary.h"
#include "tests/testing.h"

namespace esscher {
namespace {

namespace fs = std::filesystem;
using testing::bytes_of;
using ::testing::HasSubstr;
using testing::message_of;
using testing::Temporary;

struct Point {
  std::int64_t L = 0;
  double value = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("L", row.L, "tokens", "length of the prompt");
    column("value", row.value, "", "what it is");
  }
};

const RunInfo kInfo{"study", "[sweep]\nlengths = [1, 2]\n", 7};

void fill(const fs::path& directory, std::vector<int> cells, double factor = 1) {
  auto run = Run::create_or_resume(directory, kInfo);
  std::vector<std::string> keys;
  for (int i = 0; i < 20; ++i) keys.push_back("L=" + std::to_string(i));
  run.declare(keys, columns_of<Point>());
  for (const int i : cells) {
    run.commit("L=" + std::to_string(i), std::vector<Point>{{.L = i, .value = factor / (i + 3)}},
               0.5, "exact");
  }
}

TEST(Run, KeepsRowsInDeclaredOrder) {
  const Temporary tmp;
  fill(tmp / "a", {5, 2, 11});
  const auto run = Run::open(tmp / "a");
  const auto rows = rows_of<Point>("a", run.table());
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].L, 2);
  EXPECT_EQ(rows[2].L, 11);
  EXPECT_EQ(rows[0].value, 1.0 / 5);
  EXPECT_EQ(run.rows<Point>(std::vector<std::string>{"L=11", "L=2"})[1].L, 2);
  EXPECT_THROW(run.rows<Point>(std::vector<std::string>{"L=6"}), ArgumentError) << "not done";
  EXPECT_TRUE(run.done("L=5"));
  EXPECT_FALSE(run.done("L=6"));
  EXPECT_EQ(run.status().total, 20);
  EXPECT_EQ(bytes_of(tmp / "a" / "config.toml"), kInfo.config_toml);
}

TEST(Run, StartedAgainResumes) {
  const Temporary tmp;
  fill(tmp / "a", {1});
  fill(tmp / "a", {1, 2});  // committing equal rows again changes nothing
  auto run = Run::create_or_resume(tmp / "a", kInfo);
  EXPECT_EQ(run.status().done, 2);
  EXPECT_EQ(run.provenance()["sessions"].size(), 3u);
  EXPECT_THAT(message_of<RuntimeFailure>([&] { run.commit("L=1", std::vector<Point>{{.L = -1}}); }),
              HasSubstr("L=1"));
}

TEST(Run, ShowsTheDifferenceOfConfigurations) {
  const Temporary tmp;
  fill(tmp / "a", {1});
  RunInfo other = kInfo;
  other.config_toml = "[sweep]\nlengths = [1, 3]\n";
  const auto text = message_of<ConfigError>([&] { Run::create_or_resume(tmp / "a", other); });
  EXPECT_THAT(text, HasSubstr("- lengths = [1, 2]"));
  EXPECT_THAT(text, HasSubstr("+ lengths = [1, 3]"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("[sweep]")));
  other = kInfo;
  other.seed = 8;
  EXPECT_THAT(message_of<ConfigError>([&] { Run::create_or_resume(tmp / "a", other); }),
              HasSubstr("+ seed = 8"));
}

TEST(Run, TheSecondProcessIsToldWhoHoldsIt) {
  const Temporary tmp;
  const auto run = Run::create_or_resume(tmp / "a", kInfo);
  // A second open file description conflicts like a second process does.
  const auto text = message_of<RuntimeFailure>([&] { Run::create_or_resume(tmp / "a", kInfo); });
  EXPECT_THAT(text, HasSubstr("process " + std::to_string(getpid()) + " on " + host_name()));
  EXPECT_TRUE(lock_holder(tmp / "a").has_value());
  EXPECT_NO_THROW(Run::open(tmp / "a"));
}

TEST(Run, LeavesStrangeDirectoriesAlone) {
  const Temporary tmp;
  fs::create_directories(tmp / "a");
  std::ofstream(tmp / "a" / "thesis.tex") << "precious";
  EXPECT_THAT(message_of<FileError>([&] { Run::create_or_resume(tmp / "a", kInfo); }),
              HasSubstr("not a run"));
  EXPECT_EQ(bytes_of(tmp / "a" / "thesis.tex"), "precious");
  EXPECT_THROW(Run::open(tmp / "nothing"), FileError);
}

TEST(Run, DocumentsReplace) {
  const Temporary tmp;
  auto run = Run::create_or_resume(tmp / "a", kInfo);
  EXPECT_FALSE(run.document("report"));
  run.set_document("report", {{"title", "one"}});
  run.set_document("report", {{"title", "two"}});
  EXPECT_EQ((*run.document("report"))["title"], "two");
  run.close();
  auto reader = Run::open(tmp / "a");
  EXPECT_EQ((*reader.document("report"))["title"], "two");
  EXPECT_THROW(reader.set_document("report", {}), FileError);
}

TEST(Schema, UpgradesVersionOne) {
  const Temporary tmp;
  fill(tmp / "a", {1, 2, 3});
  const std::string want = export_csv(Run::open(tmp / "a"));
  {
    Database database(tmp / "a" / "run.sqlite", Database::Mode::write);
    database.execute(
        "PRAGMA foreign_keys = OFF;"
        "DROP TABLE documents; ALTER TABLE provenance DROP COLUMN engine;"
        "ALTER TABLE results DROP COLUMN digest;"
        "CREATE TABLE old(ordinal INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);"
        "INSERT INTO old SELECT ordinal, key FROM cells; DROP TABLE cells;"
        "ALTER TABLE old RENAME TO cells; DROP TABLE layouts; PRAGMA user_version = 1");
  }
  const auto before = bytes_of(tmp / "a" / "run.sqlite");
  EXPECT_EQ(export_csv(Run::open(tmp / "a")), want);
  EXPECT_TRUE(bytes_of(tmp / "a" / "run.sqlite") == before) << "reading must not change the file";
  fill(tmp / "a", {1, 2, 3});
  Database database(tmp / "a" / "run.sqlite", Database::Mode::read);
  EXPECT_EQ(database.integer("PRAGMA user_version"), kSchemaVersion);
  EXPECT_EQ(export_csv(Run::open(tmp / "a")), want);
}

TEST(Schema, RefusesTheFuture) {
  const Temporary tmp;
  fill(tmp / "a", {1});
  const auto file = tmp / "a" / "run.sqlite";
  Database(file, Database::Mode::write).execute("PRAGMA user_version = 99");
  const auto before = bytes_of(file);
  for (const auto& text :
       {message_of<FileError>([&] { Run::open(tmp / "a"); }),
        message_of<FileError>([&] { Run::create_or_resume(tmp / "a", kInfo); })}) {
    EXPECT_THAT(text, HasSubstr("schema version 99"));
    EXPECT_THAT(text, HasSubstr("newer esscher"));
  }
  EXPECT_TRUE(bytes_of(file) == before);
}

TEST(Schema, RefusesOtherFiles) {
  const Temporary tmp;
  fill(tmp / "a", {1});
  const auto file = tmp / "a" / "run.sqlite";
  fs::resize_file(file, 0);
  EXPECT_THAT(message_of<FileError>([&] { Run::open(tmp / "a"); }), HasSubstr("empty"));
  std::ofstream(file) << "hello, this is not a database at all";
  EXPECT_THAT(message_of<FileError>([&] { Run::open(tmp / "a"); }), HasSubstr("not an SQLite"));
  fs::remove(file);
  Database(file, Database::Mode::create).execute("CREATE TABLE t(x)");
  EXPECT_THAT(message_of<FileError>([&] { Run::open(tmp / "a"); }),
              HasSubstr("not an esscher run"));
}

TEST(Schema, RefusesTruncatedFiles) {
  const Temporary tmp;
  fill(tmp / "a", {1, 2, 3, 4, 5, 6});
  const auto file = tmp / "a" / "run.sqlite";
  const auto whole = bytes_of(file);
  for (const double part : {0.1, 0.3, 0.5, 0.9}) {
    std::ofstream(file, std::ios::binary | std::ios::trunc)
        << whole.substr(0, static_cast<std::size_t>(part * static_cast<double>(whole.size())));
    const auto before = bytes_of(file);
    EXPECT_THROW(Run::open(tmp / "a"), FileError) << part;
    EXPECT_THROW(Run::create_or_resume(tmp / "a", kInfo), FileError) << part;
    EXPECT_TRUE(bytes_of(file) == before) << part;
  }
}

// Any flipped bit is either noticed or harmless: the export never lies.
TEST(Schema, AFlippedBitNeverChangesResults) {
  const Temporary tmp;
  fill(tmp / "a", {1, 2, 3, 4, 5, 6});
  const auto file = tmp / "a" / "run.sqlite";
  const auto whole = bytes_of(file);
  const auto want = export_json(Run::open(tmp / "a"));
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    auto bytes = whole;
    // Where the content is: pages are filled from both ends, the middle is mostly empty.
    const std::size_t at = random() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    try {
      EXPECT_EQ(export_json(Run::open(tmp / "a")), want) << "byte " << at;
    } catch (const FileError&) {
      ++refused;
    }
    EXPECT_TRUE(bytes_of(file) == bytes);
  }
  EXPECT_GT(refused, 3);
}

TEST(List, ShowsProgressAgeAndState) {
  const Temporary tmp;
  fill(tmp / "runs" / "half", {1, 2});
  fill(tmp / "runs" / "deep" / "whole", {1, 2, 3});
  fs::create_directories(tmp / "runs" / "damaged");
  write_text(tmp / "runs" / "damaged" / "run.sqlite", "not a database");
  const auto runs = list_runs(tmp / "runs");
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_THAT(runs[0].state, HasSubstr("damaged"));
  EXPECT_EQ(runs[1].directory.filename(), "whole");
  EXPECT_EQ(runs[1].status.done, 3);
  EXPECT_EQ(runs[2].state, "interrupted");
  EXPECT_EQ(runs[2].status.total, 20);
  EXPECT_GE(runs[2].age, 0);
  EXPECT_LT(runs[2].age, 60);
}

TEST(Merge, PutsShardsTogether) {
  const Temporary tmp;
  fill(tmp / "a", {1, 5, 3});
  fill(tmp / "b", {2, 3, 4});
  merge_runs({tmp / "a", tmp / "b"}, tmp / "c");
  fill(tmp / "whole", {1, 2, 3, 4, 5});
  EXPECT_EQ(export_csv(Run::open(tmp / "c")), export_csv(Run::open(tmp / "whole")));
  EXPECT_EQ(Run::open(tmp / "c").status().total, 20);
  EXPECT_NO_THROW(fill(tmp / "c", {6}));
}

TEST(Merge, FindsTheRunThatDiffersAmongMany) {
  const Temporary tmp;
  fill(tmp / "a", {1, 2});
  fill(tmp / "b", {2, 3});
  fill(tmp / "c", {4, 3}, 1.5);
  EXPECT_NO_THROW(merge_runs({tmp / "a", tmp / "b"}, tmp / "both"));
  EXPECT_THAT(message_of<RuntimeFailure>([&] {
                merge_runs({tmp / "a", tmp / "b", tmp / "c"}, tmp / "all");
              }),
              AllOf(HasSubstr("L=3"), HasSubstr("differs between " + (tmp / "b").string() +
                                                " and " + (tmp / "c").string())));
}

TEST(Merge, RefusesConflictsAndOtherStudies) {
  const Temporary tmp;
  fill(tmp / "a", {1, 2});
  fill(tmp / "b", {2, 3}, 1.5);
  // Which two runs disagree is known while merging only: the store refuses the second rows as well,
  // but names the new directory, which does not stay.
  EXPECT_THAT(message_of<RuntimeFailure>([&] {
                merge_runs({tmp / "a", tmp / "b"}, tmp / "c");
              }),
              AllOf(HasSubstr("L=2"), HasSubstr("differs between " + (tmp / "a").string() +
                                                " and " + (tmp / "b").string())));
  EXPECT_FALSE(fs::exists(tmp / "c")) << "nothing half-merged may stay";
  Run::create_or_resume(tmp / "d", {"study", "other = 1\n", 7});
  EXPECT_THROW(merge_runs({tmp / "a", tmp / "d"}, tmp / "c"), ConfigError);
}

TEST(Files, LineDifference) {
  EXPECT_EQ(line_difference("a\nb\nc\n", "a\nx\nc\n"), "  - b\n  + x\n");
  EXPECT_EQ(line_difference("a\n", "a\n"), "");
  EXPECT_EQ(line_difference("", "a\n"), "  + a\n");
}

}  // namespace
}  // namespace esscher
