#include "esscher/json/json.h"

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/io/strict_json.h"

namespace esscher {

Json parse_json(std::string_view where, std::string_view text) {
  check_strict_json(where, text);
  return Json::parse(text.begin(), text.end());
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

void put(Json& object, const std::string& key, double x) {
  object[key] = number(x);
  if (!std::isfinite(x)) object["not_finite"][key] = to_text(std::isnan(x) ? std::abs(x) : x);
}

std::string dump(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string dump_pretty(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace esscher
