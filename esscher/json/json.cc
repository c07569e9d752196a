#include "esscher/json/json.h"

#include <cmath>
#include <set>
#include <vector>

#include "esscher/base/error.h"

namespace esscher {
namespace {

constexpr int kMaxDepth = 64;

}  // namespace

Json parse_json(std::string_view where, std::string_view text) {
  std::vector<std::set<std::string>> keys;
  const auto fail = [&](const std::string& what) {
    throw FileError(std::string(where) + ": " + what + ", expected strict JSON");
  };
  const Json::parser_callback_t watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxDepth) fail("nesting deeper than " + std::to_string(kMaxDepth));
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) fail("duplicate key \"" + key + "\"");
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::exception& error) {
    throw FileError(std::string(where) + ": " + error.what());
  }
}

Json number(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }

Json number(Length length) { return length.is_infinite() ? Json("inf") : Json(length.count()); }

Json json_vector(const VectorView& v) {
  Json out = Json::array();
  for (Index i = 0; i < v.size(); ++i) out.push_back(number(v(i)));
  return out;
}

Json json_matrix(const MatrixView& m) {
  Json out = Json::array();
  for (Index i = 0; i < m.rows(); ++i) out.push_back(json_vector(Vector(m.row(i))));
  return out;
}

std::string dump(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string dump_pretty(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace esscher
