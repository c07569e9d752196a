#include "esscher/io/strict_json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "esscher/base/error.h"

namespace esscher {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxDepth = 64;

// Hears every event of the parser and keeps only the keys of the objects that are open.
class StrictSax final : public Json::json_sax_t {
 public:
  explicit StrictSax(std::string_view where) : where_(where) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second) fail("duplicate key \"" + key + "\"");
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    throw FileError(where_ + ": " + error.what());
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw FileError(where_ + ": " + what + ", expected strict JSON");
  }
  bool open() {
    keys_.emplace_back();
    if (keys_.size() > kMaxDepth) fail("nesting deeper than " + std::to_string(kMaxDepth));
    return true;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  std::string where_;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

void check_strict_json(std::string_view where, std::string_view text) {
  StrictSax sax(where);
  Json::sax_parse(text.begin(), text.end(), &sax);
}

}  // namespace esscher
