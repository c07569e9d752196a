// The declaration of keys against the code that reads them.
#include "esscher/config/keys.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "esscher/base/error.h"
#include "esscher/config/icl.h"
#include "esscher/config/layer.h"
#include "esscher/config/measure.h"
#include "esscher/config/presets.h"
#include "esscher/config/schema.h"
#include "esscher/config/sweep.h"
#include "esscher/config/train.h"
#include "esscher/io/file.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::message_of;

// Reads a configuration as the verb does.
void read_as(std::string_view verb, const Config& config) {
  const Table root = config.root();
  if (verb == "limit") {
    const AnyMeasure mu = read_measure(root.table("measure"));
    (void)read_attention(root, mu.dim());
    (void)read_query(root, mu.dim());
  } else if (verb == "concentration" || verb == "length") {
    (void)read_problem(root);
    (void)read_sweep(root, 0);
  } else if (verb == "icl risk") {
    (void)read_risk_problem(root, 0);
  } else if (verb == "icl flow") {
    (void)read_flow_problem(root, 0);
  } else if (verb == "icl train") {
    (void)read_train(root, 0);
  } else if (verb == "icl optimum") {
    (void)read_optimum_problem(root, 0);
  } else if (verb == "icl compare") {
    (void)read_compare_problem(root, 0);
  }
}

// The template with every comment that shows a default made a setting.
std::string uncommented(const std::string& text) {
  std::string out, line;
  for (std::istringstream lines(text); std::getline(lines, line);) {
    const bool is_table = line.starts_with("# [");
    const bool is_key = line.starts_with("# ") && line.find(" = ") < 24;
    const bool is_open = line.find(" = .. ") != std::string::npos;
    if ((is_table || is_key) && !is_open && !line.starts_with("#   ")) line.erase(0, 2);
    out += line + "\n";
  }
  return out;
}

void expect_defaults_kept(const ConfigValue& declared, const ConfigValue& read,
                          const std::string& path) {
  const ConfigValue::Map* keys = read.map();
  for (const auto& [name, value] : *declared.map()) {
    const auto found = keys->find(name);
    if (found == keys->end()) continue;  // a default that no getter writes down
    if (value.map() && found->second.map()) {
      expect_defaults_kept(value, found->second, path + name + ".");
    } else {
      EXPECT_TRUE(same_data(value, found->second))
          << path << name << " is declared " << value.text() << ", read " << found->second.text();
    }
  }
}

TEST(ConfigKeys, TemplatesAreReadWithoutAnEdit) {
  for (const VerbDeclaration& verb : declared_verbs()) {
    if (verb.name == "attend") continue;  // its tokens are a file of the user's
    const Config config = Config::parse(config_template(verb.name), "template");
    config.check_known();
    EXPECT_NO_THROW(read_as(verb.name, config)) << verb.name;
    EXPECT_NO_THROW(config.check_all_used()) << verb.name;
  }
}

TEST(ConfigKeys, DeclaredDefaultsAreTheOnesInForce) {
  for (const VerbDeclaration& verb : declared_verbs()) {
    if (verb.name == "attend") continue;
    const Config config = Config::parse(config_template(verb.name), "template");
    read_as(verb.name, config);
    const ConfigValue read = parse_toml(config.resolved_toml(), "resolved");
    const ConfigValue declared = parse_toml(uncommented(config_template(verb.name)), "declared");
    expect_defaults_kept(declared, read, "");
  }
}

// Defaults that getters write are keys too.
TEST(ConfigKeys, EveryKeyThatIsReadIsDeclared) {
  for (const VerbDeclaration& verb : declared_verbs()) {
    if (verb.name == "attend") continue;
    const Config config = Config::parse(config_template(verb.name), "template");
    read_as(verb.name, config);
    EXPECT_NO_THROW(check_known_keys(parse_toml(config.resolved_toml(), "resolved"))) << verb.name;
  }
  for (const Preset& preset : presets()) EXPECT_NO_THROW(load_preset(preset.name).check_known());
}

TEST(ConfigKeys, SlipsAreNamedWithTheNearestKey) {
  struct Case {
    const char* text;
    const char* says;
  };
  for (const Case& bad : {
           Case{"mesure.type = 'gaussian'\nmeasure.dim = 2",
                "t:1: unknown key mesure, did you mean measure?"},
           Case{"[measure]\ntype = 'gaussian'\ndimm = 2",
                "t:3: unknown key measure.dimm, did you mean dim?"},
           Case{"[[measure.parts]]\ntyp = 'sphere'",
                "t:2: unknown key measure.parts[0].typ, did you mean type?"},
           Case{"[attention]\nU = { kind = 'kcm', rh0 = 1 }",
                "t:2: unknown key attention.U.rh0, did you mean rho?"},
           Case{"[train]\noptimiser = 'adam'",
                "t:2: unknown key train.optimiser, did you mean optimizer?"},
           Case{"[model.init]\nkindd = 'torch'",
                "t:2: unknown key model.init.kindd, did you mean kind?"},
           Case{"[train]\ncolour = 1",
                "t:2: unknown key train.colour, expected one of length, optimizer, "
                "learning_rate, momentum, beta1, beta2, epsilon, weight_decay, clip, batch, steps, "
                "gradient, loss, curve_block, checkpoints"},
       }) {
    EXPECT_EQ(message_of<ConfigError>([&] { Config::parse(bad.text, "t").check_known(); }),
              bad.says);
  }
}

TEST(ConfigKeys, AVerbWithoutConfigurationIsNamed) {
  EXPECT_EQ(message_of<ArgumentError>([] { (void)config_template("lenght"); }),
            "config: there is no configuration of lenght, did you mean length?");
}

// The schema allows what the declarations allow: each preset has only properties of its tables.
TEST(ConfigKeys, TheSchemaHasEveryDeclaredKey) {
  const Json schema = config_schema();
  for (const TableDeclaration& table : declared_tables()) {
    const Json& properties = schema.at("$defs").at(std::string(table.name)).at("properties");
    EXPECT_EQ(properties.size(), table.keys.size());
    for (const KeyDeclaration& key : table.keys) {
      EXPECT_TRUE(properties.contains(std::string(key.name))) << table.name << "." << key.name;
      if (key.table.empty()) continue;
      EXPECT_TRUE(schema.at("$defs").contains(std::string(key.table))) << key.table;
    }
  }
  EXPECT_EQ(schema.at("properties").size(), root_tables().size());
  EXPECT_EQ(schema.at("$defs").at("train").at("properties").at("loss").at("enum"),
            (Json{"half", "mse"}));
}

// The reference page holds what is declared; ESSCHER_UPDATE=1 writes it.
TEST(Keys, TheReferencePageIsMadeFromThem) {
  const std::filesystem::path file =
      std::filesystem::path(testing::source_dir()) / "docs/reference/toml.md";
  const std::string begin = "ESSCHER_UPDATE=1 writes it -->\n", end = "<!-- end -->";
  std::string page = read_text(file);
  const std::size_t from = page.find(begin) + begin.size(), to = page.find(end);
  ASSERT_LT(from, to + 1);
  ASSERT_NE(to, std::string::npos);
  const std::string want = "\n" + config_reference();
  if (std::getenv("ESSCHER_UPDATE") != nullptr) {
    write_text(file, page.substr(0, from) + want + page.substr(to));
    return;
  }
  EXPECT_EQ(page.substr(from, to - from), want);
  for (const TableDeclaration& table : declared_tables()) {
    for (const KeyDeclaration& key : table.keys) {
      EXPECT_NE(want.find("| `" + std::string(key.name) + "` |"), std::string::npos) << key.name;
    }
  }
}

}  // namespace
}  // namespace esscher
