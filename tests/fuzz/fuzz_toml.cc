#include "esscher/config/table.h"
#include "tests/fuzz/fuzz.h"

using namespace esscher;

namespace {

// Every getter on every key: a result or a ConfigError.
void read_all(const Table& table) {
  const auto attempt = [](const auto& read) {
    try {
      (void)read();
    } catch (const ConfigError&) {
    }
  };
  for (const std::string& key : table.keys()) {
    attempt([&] { return table.number(key); });
    attempt([&] { return table.integer(key, Range::at_least(0)); });
    attempt([&] { return table.length(key); });
    attempt([&] { return table.matrix(key); });
    attempt([&] { return table.file(key); });
    attempt([&] { return table.choice(key, {"a", "b"}); });
    attempt([&] { return read_all(table.table(key)), 0; });
    attempt([&] {
      for (const Table& item : table.tables(key)) read_all(item);
      return 0;
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::run(data, size, [](Bytes bytes) {
    const std::string_view text = as_text(bytes);
    const ConfigValue value = parse_toml(text, "fuzz");
    const ConfigValue again = parse_toml(write_toml(value), "again");
    fuzz::require(same_data(value, again) && write_toml(again) == write_toml(value));
    Config config = Config::parse(text, "fuzz");
    try {
      config.check_known();
    } catch (const ConfigError&) {
    }
    read_all(config.root());
    config.set(text.substr(0, text.find('\n')));
    config.check_all_used();
  });
}
