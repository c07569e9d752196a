// The paper at its tiny size: every verdict holds, each planted sign makes its own verdict fail,
// and a run is resumable and the same bits whatever the threads.
#include "esscher/paper/paper.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <set>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/report/report.h"

namespace esscher::paper {
namespace {

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

Json run_in(const std::filesystem::path& path, const Options& options,
            const std::vector<std::string>& ids) {
  esscher::Run run = esscher::Run::create_or_resume(path, paper_run(options));
  return run_paper(run, options, ids, {}).value();
}

std::vector<std::string> all_ids() {
  std::vector<std::string> ids;
  for (const Section& s : sections()) ids.emplace_back(s.id);
  return ids;
}

class EachSection : public ::testing::TestWithParam<std::string> {};

TEST_P(EachSection, HoldsAndCarriesWhatAReaderNeeds) {
  const Folder folder("holds-" + GetParam());
  const Options options{.size = Size::tiny};
  const Json summary = run_in(folder.path(), options, {GetParam()});
  ASSERT_EQ(summary["sections"].size(), 1u);
  const Json& one = summary["sections"][0];
  EXPECT_EQ(one["id"], GetParam());
  const std::string status = one["status"];
  EXPECT_TRUE(status == "holds" || status == "holds-fitted") << one["verdict"];

  const esscher::Run run = esscher::Run::open(folder.path());
  const Json page = *run.document("report");
  ASSERT_EQ(page["sections"].size(), 1u);
  const Json& section = page["sections"][0];
  EXPECT_GT(section["statement"].get<std::string>().size(), 80u);
  EXPECT_FALSE(section["hypotheses"].empty());
  EXPECT_FALSE(section["formulas"].empty());
  EXPECT_FALSE(section["tables"].empty());
  ASSERT_FALSE(section["figures"].empty());
  EXPECT_NE(section["rerun"].get<std::string>().find("--section " + GetParam()), std::string::npos);
  EXPECT_NO_THROW(report_html(run, page_of(run)));
  for (const Json& figure : report_figures(page_of(run))["figures"]) {
    EXPECT_GT(dump(figure["spec"]).size(), 500u) << figure["id"];
  }
}

TEST_P(EachSection, AWrongSignMakesTheVerdictFail) {
  const Folder folder("plant-" + GetParam());
  const Options options{.size = Size::tiny, .plant = GetParam()};
  const Json summary = run_in(folder.path(), options, {GetParam()});
  EXPECT_EQ(summary["sections"][0]["status"], "fails") << summary["sections"][0]["verdict"];
}

INSTANTIATE_TEST_SUITE_P(Paper, EachSection, ::testing::ValuesIn(all_ids()), [](const auto& param) {
  std::string id = param.param;
  for (char& c : id) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return id;
});

TEST(Paper, KeysAreUniqueAtEverySize) {
  for (const Size size : {Size::tiny, Size::quick, Size::full}) {
    std::set<std::string> seen;
    std::size_t count = 0;
    for (const Section& s : sections()) {
      for (const std::string& key : s.keys({.size = size})) {
        EXPECT_EQ(key.rfind(std::string(s.id) + "/", 0), 0u) << key;
        seen.insert(key);
        ++count;
      }
    }
    EXPECT_EQ(seen.size(), count) << name(size);
  }
}

TEST(Paper, SectionsFillOneRunAndRowsDoNotDependOnThreads) {
  const Folder one("one"), two("two");
  const Options options{.size = Size::tiny, .seed = 5};
  set_thread_count(1);
  run_in(one.path(), options, {"lemma-2.1", "almost-sure"});
  set_thread_count(0);
  run_in(two.path(), options, {"almost-sure"});
  const Json summary = run_in(two.path(), options, {"lemma-2.1"});
  EXPECT_EQ(summary["sections"].size(), 1u);
  const esscher::Run a = esscher::Run::open(one.path()), b = esscher::Run::open(two.path());
  EXPECT_EQ(b.document("report")->at("sections").size(), 2u);
  EXPECT_EQ(dump(*a.document("report")), dump(*b.document("report")));
}

TEST(Paper, RefusesUnknownNames) {
  EXPECT_THROW(parse_size("huge"), ArgumentError);
  EXPECT_THROW((void)section("lemma-9"), ArgumentError);
  const Folder folder("unknown");
  EXPECT_THROW(run_in(folder.path(), {.size = Size::tiny}, {"lemma-9"}), ArgumentError);
}

}  // namespace
}  // namespace esscher::paper
