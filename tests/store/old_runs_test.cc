// Runs that the released program wrote (tests/data/runs, schema version 2) open, read as the rows of
// today, export, show their report and go on where they stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "esscher/concentration/study.h"
#include "esscher/heads/diagnosis.h"
#include "esscher/io/file.h"
#include "esscher/report/report.h"
#include "esscher/store/export.h"
#include "esscher/store/run.h"
#include "esscher/training/chain.h"
#include "esscher/training/flow_rows.h"
#include "esscher/training/twin_rows.h"
#include "tests/store/temporary.h"
#include "tests/testing.h"

namespace esscher {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::Temporary;

// A copy that may be written.
class OldRun {
 public:
  explicit OldRun(const std::string& name) {
    fs::copy(fs::path(testing::source_dir()) / "tests/data/runs" / name, tmp_ / name);
    directory_ = tmp_ / name;
  }
  [[nodiscard]] const fs::path& directory() const { return directory_; }
  [[nodiscard]] Run open() const { return Run::open(directory_); }

 private:
  Temporary tmp_;
  fs::path directory_;
};

template <class Row>
std::vector<Row> rows_of_run(const Run& run) {
  return run.rows<Row>(run.keys());
}

TEST(OldRuns, NullWasAnInfiniteConstant) {
  const auto run = OldRun("concentration-slow").open();
  const auto rows = rows_of_run<PointRow>(run);
  ASSERT_EQ(rows.size(), 3u);
  for (const PointRow& row : rows) {
    EXPECT_EQ(row.asymptotic, HUGE_VAL);
    EXPECT_GT(row.bias2, 0);
  }
  EXPECT_EQ(rows[0].value, 0.7235367952062219);
  EXPECT_EQ(rows[0].bias2, 0.46664594501684104);
  EXPECT_THAT(export_csv(run), HasSubstr(",inf,"));
  EXPECT_THAT(export_json(run), HasSubstr("\"asymptotic\": null"));
}

TEST(OldRuns, CovariancesAreNumbersAgain) {
  const auto rows = rows_of_run<PointRow>(OldRun("concentration-points").open());
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0].cov, (std::vector<double>{0.0013757285924870435}));
  ASSERT_TRUE(rows[1].cov.has_value());
  EXPECT_EQ(rows[1].cov->size(), 2u);
}

TEST(OldRuns, HeadsOfAModelAreStacked) {
  const auto rows = rows_of_run<TrainRow>(OldRun("train-heads").open());
  const auto checkpoint = std::find_if(rows.begin(), rows.end(), [](const TrainRow& row) {
    return row.what == TrainRowKind::checkpoint;
  });
  ASSERT_NE(checkpoint, rows.end());
  const std::vector<Readout> heads = checkpoint->heads();
  ASSERT_EQ(heads.size(), 2u);
  EXPECT_EQ(heads[0].U(1, 0), -0.1983764140527276);
  EXPECT_EQ(heads[1].r(1), -0.07526532413715095);
}

TEST(OldRuns, TwinsAndDiagnosesReadAsToday) {
  const auto twins = rows_of_run<TwinRow>(OldRun("compare").open());
  EXPECT_EQ(twins.size(), 17u);
  const auto heads = rows_of_run<HeadDiagnosis>(OldRun("heads").open());
  ASSERT_EQ(heads.size(), 1u);
  EXPECT_EQ(heads[0].verdict_kind, HeadVerdict::linear_here);
  EXPECT_EQ(heads[0].uncentred.lin, 1.008377976130779);
  ASSERT_EQ(heads[0].mixtures.size(), 1u);
  EXPECT_EQ(heads[0].mixtures[0].in_sample.lin, 0.000814706433941257);
  EXPECT_EQ(heads[0].score_histogram.size(), 50);
}

// tests/data/runs/NAME.json is what a script in another language makes of the export of the
// released program.
TEST(OldRuns, ExportsAreTheOldNumbersUnderTodaysNames) {
  for (const char* name : {"concentration-slow", "concentration-points", "compare", "train-heads",
                           "heads", "flow", "paper"}) {
    const fs::path file =
        fs::path(testing::source_dir()) / "tests/data/runs" / (std::string(name) + ".json");
    const Json want = parse_json(file.string(), read_text(file));
    const Json got = parse_json(name, export_json(OldRun(name).open())).at("rows");
    // The order of the columns is not part of it.
    EXPECT_EQ(nlohmann::json::parse(dump(got)), nlohmann::json::parse(dump(want))) << name;
  }
}

// Resuming declares the columns of today beside those of the old rows: their types must agree.
template <class Row>
void expect_resumes(const char* name) {
  const OldRun old(name);
  const RunInfo info = old.open().info();
  auto run = Run::create_or_resume(old.directory(), info);
  std::vector<std::string> keys = run.keys();
  const std::size_t rows = run.table().rows.size();
  keys.push_back("a new cell");
  EXPECT_NO_THROW(run.declare(keys, columns_of<Row>())) << name;
  keys.pop_back();
  EXPECT_EQ(run.rows<Row>(keys).size(), rows) << name;
}

TEST(OldRuns, TypesAreThoseOfToday) {
  expect_resumes<PointRow>("concentration-slow");
  expect_resumes<PointRow>("concentration-points");
  expect_resumes<TwinRow>("compare");
  expect_resumes<TrainRow>("train-heads");
  expect_resumes<FlowRow>("flow");
  expect_resumes<HeadDiagnosis>("heads");
}

TEST(OldRuns, ReadingLeavesTheDirectoryAsItIs) {
  const OldRun old("compare");
  const std::string before = testing::bytes_of(old.directory() / "run.sqlite");
  (void)export_csv(old.open());
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(old.directory())) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("config.toml", "run.sqlite"));
  EXPECT_TRUE(testing::bytes_of(old.directory() / "run.sqlite") == before);
}

TEST(OldRuns, ReportsAndResumes) {
  for (const char* name :
       {"concentration-slow", "concentration-points", "compare", "train-heads", "heads"}) {
    const OldRun old(name);
    RunInfo info;
    {
      const auto run = old.open();
      info = run.info();
      EXPECT_THAT(report_html(run, page_of(run)), HasSubstr("</html>")) << name;
    }
    const std::string before = export_csv(old.open());
    const auto resumed = Run::create_or_resume(old.directory(), info);
    EXPECT_EQ(resumed.status().done, resumed.status().total) << name;
    EXPECT_EQ(export_csv(resumed), before) << name << ": upgraded in place";
  }
}

TEST(OldRuns, DamageIsSeenBeforeTheUpgrade) {
  const OldRun old("compare");
  std::string bytes = testing::bytes_of(old.directory() / "run.sqlite");
  const auto at = bytes.find("0.4607902744891403");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 5] = bytes[at + 5] == '1' ? '2' : '1';
  write_text(old.directory() / "run.sqlite", bytes);
  EXPECT_THAT(testing::message_of<FileError>([&] { return old.open().keys(); }),
              HasSubstr("does not match its digest"));
}

}  // namespace
}  // namespace esscher
