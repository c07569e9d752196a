// The paper at its tiny size: every verdict holds, every section carries what a reader needs, and a
// run is resumable and the same bits whatever the threads.
#include "esscher/paper/paper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/paper/claims.h"
#include "esscher/paper/papers.h"
#include "esscher/report/report.h"
#include "esscher/store/exec.h"

namespace esscher::paper {
namespace {

using ::testing::HasSubstr;

class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("esscher-paper-" + name + "-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

RecordTable rows_of_statement(const Statement& s, const Options& options) {
  const RecordCells cells = s.cells(options);
  std::vector<RecordTable> parts(cells.keys.size());
  parallel_for(static_cast<std::int64_t>(parts.size()), [&](std::int64_t i) {
    parts[static_cast<std::size_t>(i)] = cells.compute(static_cast<std::size_t>(i));
  });
  RecordTable all{.columns = s.columns, .rows = {}};
  for (RecordTable& part : parts) {
    EXPECT_EQ(part.columns, s.columns);
    std::move(part.rows.begin(), part.rows.end(), std::back_inserter(all.rows));
  }
  return all;
}

// What a chart reads: datasets, and columns of each of them.
struct Drawn {
  std::vector<std::string> data;
  std::vector<std::string> columns;
  std::vector<std::string> titles;
};

Drawn drawn_by(const Chart& chart) {
  if (const auto* curve = std::get_if<CurveChart>(&chart)) {
    Drawn out{{curve->data}, {curve->x.column, curve->y.column}, {curve->x.title, curve->y.title}};
    if (!curve->reference_data.empty()) out.data.push_back(curve->reference_data);
    for (const std::string& column : {curve->series, curve->facet}) {
      if (!column.empty()) out.columns.push_back(column);
    }
    return out;
  }
  const auto* scatter = std::get_if<ScatterChart>(&chart);
  EXPECT_NE(scatter, nullptr) << "a kind of chart that this test does not know";
  if (scatter == nullptr) return {};
  return {{scatter->data},
          {scatter->x.column, scatter->y.column, scatter->series},
          {scatter->x.title, scatter->y.title}};
}

bool has_column(const Sheet& sheet, const std::string& column) {
  return std::find(sheet.columns.begin(), sheet.columns.end(), column) != sheet.columns.end();
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Whether the caption uses a word of an axis.
bool names_an_axis(const std::string& caption, const std::vector<std::string>& titles) {
  for (const std::string& title : titles) {
    std::istringstream words(title);
    for (std::string word; words >> word;) {
      std::erase(word, '|');
      if (word.size() >= 4 && lower(caption).find(lower(word)) != std::string::npos) return true;
    }
  }
  return false;
}

void expect_drawable(const Figure& figure, const std::map<std::string, Sheet>& datasets) {
  const Drawn drawn = drawn_by(figure.chart);
  for (const std::string& data : drawn.data) {
    ASSERT_TRUE(datasets.contains(data)) << figure.id << " draws " << data;
    EXPECT_FALSE(datasets.at(data).rows.empty()) << data;
    for (const std::string& column : drawn.columns) {
      EXPECT_TRUE(has_column(datasets.at(data), column)) << figure.id << ": " << column;
    }
  }
  if (const auto* curve = std::get_if<CurveChart>(&figure.chart)) {
    EXPECT_EQ(curve->low.empty(), curve->high.empty());
    for (const std::string& column : {curve->low, curve->high}) {
      EXPECT_TRUE(column.empty() || has_column(datasets.at(curve->data), column)) << column;
    }
  }
  EXPECT_TRUE(names_an_axis(figure.caption, drawn.titles)) << figure.caption;
}

// Every statement is a claim with hypotheses, numbers and controls that fail.
void expect_claimed(const SectionReport& made) {
  const Json claim = claim_json(made);
  for (const char* key : {"id", "title", "text", "hypotheses", "tolerance", "verdict", "numbers",
                          "conditions", "negative_controls", "command"}) {
    EXPECT_TRUE(claim.contains(key)) << key;
  }
  ASSERT_FALSE(claim["numbers"].empty());
  for (const Json& number : claim["numbers"]) EXPECT_TRUE(number["agrees"]) << number;
  ASSERT_FALSE(claim["negative_controls"].empty());
  for (const Json& control : claim["negative_controls"]) EXPECT_FALSE(control["agrees"]) << control;
  std::size_t values = 0;
  for (const Json& hypothesis : claim["hypotheses"]) {
    EXPECT_NE(hypothesis["holds"], Json(false)) << hypothesis;
    EXPECT_TRUE(hypothesis["holds"].is_null() || !hypothesis["values"].empty())
        << "what holds was found to hold by a number: " << hypothesis;
    values += hypothesis["values"].size();
  }
  EXPECT_GT(values, 0u) << "hypotheses come with numbers";
  EXPECT_GT(claim["tolerance"]["standard_errors"], 0);
}

void expect_readable(const SectionReport& made) {
  const Section& section = made.section;
  ASSERT_TRUE(section.verdict);
  EXPECT_NE(section.verdict->text, "");
  EXPECT_NE(section.statement, "");
  EXPECT_FALSE(section.hypotheses.empty());
  EXPECT_FALSE(section.formulas.empty());
  ASSERT_FALSE(section.figures.empty());
  std::set<std::string> ids, used;
  for (const Figure& figure : section.figures) {
    EXPECT_TRUE(ids.insert(figure.id).second) << figure.id << " twice";
    expect_drawable(figure, made.datasets);
    for (const std::string& data : drawn_by(figure.chart).data) used.insert(data);
  }
  for (const auto& [data, sheet] : made.datasets) EXPECT_TRUE(used.contains(data)) << data;
  ASSERT_FALSE(section.tables.empty());
  for (const PageTable& table : section.tables) EXPECT_FALSE(table.sheet.rows.empty());
}

struct Place {
  std::string paper, section;
};

class EachSection : public ::testing::TestWithParam<Place> {};

TEST_P(EachSection, HoldsAndCarriesWhatAReaderNeeds) {
  const Options options{.size = Size::tiny};
  const Statement& s = statement(paper(GetParam().paper), GetParam().section);
  const SectionReport made = s.report(options, "test", rows_of_statement(s, options));
  EXPECT_EQ(made.section.id, GetParam().section);
  EXPECT_EQ(made.section.title, s.title);
  expect_readable(made);
  expect_claimed(made);
  EXPECT_THAT(made.section.verdict->status,
              ::testing::AnyOf(VerdictStatus::holds, VerdictStatus::holds_fitted))
      << made.section.verdict->text;
}

std::vector<Place> all_places() {
  std::vector<Place> places;
  for (const Paper& p : papers()) {
    for (const Statement& s : p.statements) {
      places.push_back({.paper = std::string(p.id), .section = std::string(s.id)});
    }
  }
  return places;
}

INSTANTIATE_TEST_SUITE_P(Paper, EachSection, ::testing::ValuesIn(all_places()),
                         [](const auto& param) {
                           std::string id = param.param.section;
                           for (char& c : id) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return id;
                         });

TEST(Papers, NamesAreUnique) {
  std::set<std::string_view> seen, sections;
  for (const Paper& p : papers()) {
    EXPECT_TRUE(seen.insert(p.id).second) << p.id;
    EXPECT_EQ(&paper(p.id), &p);
    EXPECT_NE(p.about, "");
    EXPECT_NE(p.title, "");
    EXPECT_NE(p.lead, "");
    ASSERT_FALSE(p.statements.empty()) << p.id;
    for (const Statement& s : p.statements) EXPECT_TRUE(sections.insert(s.id).second) << s.id;
  }
  EXPECT_EQ(papers().front().id, "large-prompts");
}

// A run of one paper is not resumed as another.
TEST(Papers, ARunKnowsItsPaper) {
  std::set<std::string> seen;
  for (const Paper& p : papers()) {
    EXPECT_TRUE(seen.insert(paper_run(p, {}).config_toml).second) << p.id;
  }
  EXPECT_TRUE(seen.contains("[paper]\nsize = \"quick\"\n")) << "runs of the first paper resume";
}

TEST(Paper, KeysAreUniqueAtEverySize) {
  for (const Size size : {Size::tiny, Size::quick, Size::full}) {
    std::set<std::string> seen;
    for (const Paper& p : papers()) {
      for (const Statement& s : p.statements) {
        for (const std::string& key : s.cells({.size = size}).keys) {
          EXPECT_EQ(key.rfind(std::string(s.id) + "/", 0), 0u) << key;
          EXPECT_TRUE(seen.insert(key).second) << key;
        }
      }
    }
  }
}

TEST(Paper, AColumnHasOneTypeAndOneMeaningInAllSections) {
  for (const Paper& p : papers()) {
    std::map<std::string, Column> known;
    for (const Statement& s : p.statements) {
      ASSERT_EQ(s.columns.front().name, "section");
      for (const Column& column : s.columns) {
        const Column& first = known.try_emplace(column.name, column).first->second;
        EXPECT_EQ(first.type, column.type) << s.id << " " << column.name;
        EXPECT_EQ(first.meaning, column.meaning) << s.id << " " << column.name;
      }
    }
    const std::vector<Column> all = columns_of_paper(p);
    EXPECT_EQ(all.size(), known.size());
    EXPECT_FALSE(all.front().optional);
  }
  const std::vector<Column> first = columns_of_paper(papers().front());
  for (std::size_t i = 1; i < first.size(); ++i) EXPECT_TRUE(first[i].optional) << first[i].name;
}

const Paper& large() { return paper("large-prompts"); }

PaperResult run_in(const std::filesystem::path& path, const Options& options,
                   const std::vector<std::string>& ids, const ExecOptions& exec = {}) {
  esscher::Run run = esscher::Run::create_or_resume(path, paper_run(large(), options));
  return run_paper(run, large(), options, ids, exec);
}

TEST(Paper, SectionsFillOneRunAndRowsDoNotDependOnThreads) {
  const Folder one("one"), two("two");
  const Options options{.size = Size::tiny, .seed = 5};
  set_thread_count(1);
  run_in(one.path(), options, {"lemma-2.1", "almost-sure"});
  set_thread_count(0);
  run_in(two.path(), options, {"almost-sure"});
  const PaperResult result = run_in(two.path(), options, {"lemma-2.1"});
  ASSERT_EQ(result.sections.size(), 1u);
  EXPECT_EQ(result.sections[0].id, "lemma-2.1");
  EXPECT_EQ(result.sections[0].rerun,
            "esscher paper --section lemma-2.1 --size tiny --seed 5 --out runs/lemma-2.1");
  const esscher::Run a = esscher::Run::open(one.path()), b = esscher::Run::open(two.path());
  EXPECT_EQ(page_of(b).sections.size(), 2u);
  EXPECT_EQ(dump(*a.document("report")), dump(*b.document("report")));
  EXPECT_EQ(b.columns(), columns_of_paper(large()));
}

TEST(Paper, OneShardMakesNoPage) {
  const Folder folder("shard");
  const Options options{.size = Size::tiny};
  ExecOptions exec;
  exec.shard = Shard::parse("1/2");
  const PaperResult result = run_in(folder.path(), options, {"lemma-2.1"}, exec);
  EXPECT_FALSE(result.complete);
  EXPECT_TRUE(result.sections.empty());
  EXPECT_FALSE(esscher::Run::open(folder.path()).document("report"));
  EXPECT_EQ(run_in(folder.path(), options, {"lemma-2.1"}).sections.size(), 1u);
}

// Rows of another version of the program: an error that names what is missing, never a guess.
TEST(Paper, RowsThatLackAColumnAreRefused) {
  const Options options{.size = Size::tiny};
  const Statement& s = statement(large(), "lemma-2.1");
  RecordTable rows = rows_of_statement(s, options);
  const auto without = [&](const std::string& name) {
    RecordTable out = rows;
    for (std::size_t i = 0; i < out.columns.size(); ++i) {
      if (out.columns[i].name == name) out.columns[i].name = "renamed";
    }
    return out;
  };
  const auto message = [&](const RecordTable& table) -> std::string {
    try {
      (void)s.report(options, "runs/old", table);
    } catch (const FileError& error) {
      return error.what();
    }
    return "no FileError";
  };
  EXPECT_THAT(message(without("kurtosis")), HasSubstr("runs/old"));
  EXPECT_THAT(message(without("kurtosis")), HasSubstr("kurtosis"));
  EXPECT_THAT(message(without("relative_error")), HasSubstr("runs/old"));
  EXPECT_THAT(message(without("relative_error")), HasSubstr("lemma-2.1"));
}

TEST(Paper, RefusesUnknownNames) {
  EXPECT_THROW((void)paper("large"), ArgumentError);
  EXPECT_THROW((void)statement(large(), "lemma-9"), ArgumentError);
  const Folder folder("unknown");
  EXPECT_THROW(run_in(folder.path(), {.size = Size::tiny}, {"lemma-9"}), ArgumentError);
}

}  // namespace
}  // namespace esscher::paper
