// docs/reference/columns.md is written by the declarations of the row types. This test fails if the
// page says something else; ESSCHER_UPDATE=1 test_json --gtest_filter=ColumnsPage.* writes it again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "esscher/base/columns.h"
#include "esscher/concentration/study.h"
#include "esscher/heads/diagnosis.h"
#include "esscher/io/file.h"
#include "esscher/model/effect.h"
#include "esscher/paper/papers.h"
#include "esscher/risk/risk_rows.h"
#include "esscher/risk/temperature.h"
#include "esscher/scaling/published_tokens.h"
#include "esscher/scaling/scaling.h"
#include "esscher/training/chain.h"
#include "esscher/training/flow_rows.h"
#include "esscher/training/layer_optimum.h"
#include "esscher/training/twin_rows.h"
#include "tests/testing.h"

namespace esscher {
namespace {

// A bar would end a cell of the table and a bracket would begin a link.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '[') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

void add_columns(std::string& page, const std::vector<Column>& columns, const std::string& prefix) {
  for (const Column& column : columns) {
    page += "| `" + prefix + column.name + "` | " + std::string(name(column.type)) +
            (column.optional ? ", may be absent" : "") + " | " + column.unit + " | " +
            escaped(column.meaning) + " |\n";
    add_columns(page, column.parts, prefix + column.name + ".");
  }
}

void add_rows(std::string& page, const std::string& title, const std::vector<Column>& columns) {
  page += "\n## " + title + "\n\n| column | type | unit | meaning |\n|---|---|---|---|\n";
  add_columns(page, columns, "");
}

std::string columns_page() {
  std::string page =
      "# Columns\n\n"
      "Every row of a result has a type that declares its columns once: name, type, unit and "
      "meaning.\n"
      "The run store, CSV, JSON, npz, Python and this page read that declaration. A test compares "
      "this page\n"
      "with it.\n\n"
      "A *real* may be infinite or NaN: the store, CSV, npz and Python keep that, and JSON writes "
      "null and says\n"
      "in `not_finite` which it was. A *length* is an integer or `inf`. An *array* `A` is `A_0`, "
      "`A_1`, .. or\n"
      "`A_0_0`, .. in CSV and npz. A *table* is in JSON and Python only; its columns follow with a "
      "dot.\n";
  add_rows(page, "`concentration`, cells of a run", columns_of<PointRow>());
  add_rows(page, "`concentration`, rows of the result", columns_of<StudyRow>());
  add_rows(page, "`concentration --sigma-sweep`", columns_of<SigmaPoint>());
  add_rows(page, "`scaling`", columns_of<ScalingRow>());
  add_rows(page, "`scaling`, equiangular tokens", columns_of<EquiangularRow>());
  add_rows(page, "`scaling`, tokens on a sphere", columns_of<SphereRow>());
  add_rows(page, "`model`", columns_of<EffectRow>());
  add_rows(page, "`heads`", columns_of<HeadDiagnosis>());
  add_rows(page, "`icl risk`", columns_of<RiskRow>());
  add_rows(page, "`icl risk --temperature`", columns_of<TemperatureRow>());
  add_rows(page, "`icl flow`", columns_of<FlowRow>());
  add_rows(page, "`icl train`", columns_of<TrainRow>());
  add_rows(page, "`icl compare`", columns_of<TwinRow>());
  add_rows(page, "`icl optimum`", columns_of<OptimumRow>());
  for (const paper::Paper& paper : paper::papers()) {
    add_rows(page, "`paper --which " + std::string(paper.id) + "`, all sections",
             paper::columns_of_paper(paper));
  }
  return page;
}

TEST(ColumnsPage, SaysWhatTheRowsDeclare) {
  const std::filesystem::path file =
      std::filesystem::path(testing::source_dir()) / "docs/reference/columns.md";
  if (std::getenv("ESSCHER_UPDATE") != nullptr) write_text(file, columns_page());
  EXPECT_EQ(read_text(file), columns_page());
}

// A column without a meaning would be a gap in the page.
TEST(ColumnsPage, EveryColumnHasAMeaning) {
  for (const paper::Paper& paper : paper::papers()) {
    for (const Column& column : paper::columns_of_paper(paper)) {
      EXPECT_NE(column.meaning, "") << column.name;
    }
  }
  for (const Column& column : columns_of<TwinRow>()) EXPECT_NE(column.meaning, "") << column.name;
}

}  // namespace
}  // namespace esscher
