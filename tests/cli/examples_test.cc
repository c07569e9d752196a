// Every example of every --help works as it stands, beside the files that it names. What takes minutes is
// tried dry.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <sstream>
#include <vector>

#include "esscher/io/npy.h"
#include "esscher/io/npz.h"
#include "esscher/io/safetensors.h"
#include "esscher/random/stream.h"
#include "tests/cli/program.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;

class Examples : public Program {
 protected:
  // In the folder of the test, with the program as `esscher`.
  Outcome shell(const std::string& command) {
    write_text(file("command.sh"), "cd '" + file("").string() + "'\nesscher() { '" +
                                       esscher_program() + "' \"$@\"; }\nset -o pipefail\n" +
                                       command + "\n");
    return run_command("bash " + file("command.sh").string());
  }

  void must(const std::string& command) {
    const Outcome got = shell(command);
    ASSERT_EQ(got.code, 0) << command << "\n" << got.err;
  }

  void write_tokens();
  void write_heads();
  void write_model();
  void write_runs();

  // Words that the Tab key offers behind these.
  std::vector<std::string> words_after(const std::string& verb) {
    std::istringstream lines(run("complete-words " + verb + " ''").out);
    std::vector<std::string> out;
    for (std::string line; std::getline(lines, line);)
      out.push_back(line.substr(0, line.find('\t')));
    return out;
  }

  std::vector<std::string> verbs();
};

void Examples::write_tokens() {
  Matrix tokens(40, 2);
  for (Index i = 0; i < tokens.size(); ++i) tokens(i / 2, i % 2) = std::sin(3.0 * double(i));
  write_npy(file("tokens.npy"), tokens);
  write_text(file("q.csv"), "1,0.5\n0,1\n");
  write_text(file("exp.toml"),
             "[measure]\ntype = \"gaussian\"\ndim = 2\n[attention]\nU = 0.3\n[query]\ntype = "
             "\"gaussian\"\ndim = 2\n[sweep]\nlengths = [10, 100, 1000]\n");
}

void Examples::write_heads() {
  std::map<std::string, Array> tensors;
  for (const char* head : {"L0.H1", "L3.H6"}) {
    for (const char* part : {".Q", ".K", ".V"}) {
      std::vector<double> draws(160);
      Stream(tensors.size()).fill_normal(0, draws);
      tensors[head + std::string(part)] = array_of(Eigen::Map<const Matrix>(draws.data(), 80, 2));
    }
  }
  write_file(file("model.safetensors"), encode_safetensors(tensors));
  write_file(file("dump.npz"), encode_npz(tensors));
}

void append(std::string& bytes, const void* data, std::size_t size) {
  bytes.append(static_cast<const char*>(data), size);
}

// A checkpoint of llama2.c with random weights, texts for it, its vocabulary and a plan.
void Examples::write_model() {
  constexpr std::int32_t dim = 16, hidden = 24, layers = 2, heads = 2, vocab = 264, context = 64;
  std::string bytes;
  for (const std::int32_t number : {dim, hidden, layers, heads, heads, vocab, context}) {
    append(bytes, &number, sizeof number);
  }
  constexpr int weights = vocab * dim + layers * (2 * dim + 4 * dim * dim + 3 * hidden * dim) +
                          dim + context * dim / heads;
  std::vector<double> draws(weights);
  Stream(3).fill_normal(0, draws);
  for (const double draw : draws) {
    const auto weight = static_cast<float>(0.4 * draw);
    append(bytes, &weight, sizeof weight);
  }
  write_text(file("stories15M.bin"), bytes);
  std::string words;
  const std::int32_t longest = 6;
  append(words, &longest, sizeof longest);
  for (std::int32_t id = 0; id < vocab; ++id) {
    const std::string word = id < 3     ? "<" + std::to_string(id) + ">"
                             : id < 259 ? "<" + std::to_string(id - 3) + ">"
                                        : std::string(1, "abcd "[id - 259]);
    const float score = -1;
    const auto size = static_cast<std::int32_t>(word.size());
    append(words, &score, sizeof score);
    append(words, &size, sizeof size);
    words += word;
  }
  write_text(file("tokenizer.bin"), words);
  std::string ids;
  for (int i = 0; i < 3 * 60; ++i)
    ids += std::to_string((37 * i * i + 5) % vocab) + (i % 60 == 59 ? "\n" : " ");
  write_text(file("text.txt"), ids);
  write_text(file("story.txt"), "a cab dab a cab dab bad cad a bad dad\nabba dada baba a cab\n");
  write_text(file("plan.json"),
             R"({"heads": [{"layer": 1, "head": 0, "window": 8, "tail": "mean"}]})");
}

void Examples::write_runs() {
  must(
      "esscher concentration -c exp.toml -s 'sweep.metrics=[\"output\"]' -s "
      "'sweep.lengths=[10,20,40]' -o results/rate --quiet");
  for (const char* n : {"1", "2"}) {
    must(std::string("esscher concentration -c exp.toml --quiet -o shard") + n + " --shard " + n +
         "/2");
  }
  const std::string train = "esscher icl train --set task.dim=5 --set train.steps=20 --quiet ";
  must(train + "--length 10 --out runs/short");
  must(train + "--length 20 --out runs/long");
  must(train + "--length 10 --out runs/train");
  must("esscher heads model.safetensors --components 4 --export surrogates.safetensors --quiet");
}

std::vector<std::string> Examples::verbs() {
  std::vector<std::string> out;
  for (const std::string& verb : words_after("")) {
    if (verb == "help") continue;
    if (verb != "icl") out.push_back(verb);
    if (verb != "icl" && verb != "presets") continue;
    for (const std::string& below : words_after(verb)) out.push_back(verb + " " + below);
  }
  return out;
}

// The lines below "Examples:"; a backslash continues one.
std::vector<std::string> examples_of(const std::string& help) {
  std::vector<std::string> out;
  std::istringstream lines(help.substr(std::min(help.size(), help.find("Examples:"))));
  std::string line;
  std::getline(lines, line);
  for (bool goes_on = false; std::getline(lines, line);) {
    if (line.empty()) break;
    if (!goes_on) out.emplace_back();
    goes_on = line.ends_with('\\');
    out.back() += line.substr(0, line.size() - (goes_on ? 1 : 0));
  }
  return out;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

bool takes_minutes(const std::string& verb, const std::string& example) {
  return verb == "paper" || verb == "icl flow" || verb == "icl compare" || verb == "icl optimum" ||
         has(example, "--bound") || has(example, "--sigma-sweep");
}

TEST_F(Examples, OfEveryVerbWork) {
  write_tokens();
  write_heads();
  write_model();
  write_runs();
  const std::vector<std::string> all = verbs();
  EXPECT_GE(all.size(), 25u);
  const bool has_explorer =
      std::filesystem::exists(testing::binary_dir() + "/../explore/explore.html");
  for (const std::string& verb : all) {
    const std::vector<std::string> examples = examples_of(run(verb + " --help").out);
    EXPECT_GE(examples.size(), 1u) << verb;
    // Runs of whole presets have tests of their own, and timings have none.
    if (verb == "presets check" || verb == "bench" || (verb == "explore" && !has_explorer))
      continue;
    if (verb == "icl train") std::filesystem::remove_all(file("runs/train"));  // it makes its own
    for (std::string example : examples) {
      EXPECT_THAT(example, HasSubstr("esscher " + verb)) << verb;
      if (takes_minutes(verb, example) && !has(example, "--dry-run")) example += " --dry-run";
      const Outcome got = shell(example);
      EXPECT_EQ(got.code, 0) << example << "\n" << got.err;
    }
  }
}

// No text of the library that reads the command line, which calls options "excluded" and numbers FLOAT.
TEST_F(Examples, HelpSpeaksToPeople) {
  for (const std::string& verb : verbs()) {
    const std::string help = run(verb + " --help").out;
    for (const char* raw : {"FLOAT", "Excludes", "Needs:", "[Option Group", "INT:", "UINT"}) {
      EXPECT_THAT(help, ::testing::Not(HasSubstr(raw))) << verb;
    }
    const std::string summary = help.substr(0, help.find('\n'));
    EXPECT_TRUE(std::isupper(static_cast<unsigned char>(summary[0]))) << verb << ": " << summary;
  }
}

}  // namespace
}  // namespace esscher
