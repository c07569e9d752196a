#include "esscher/config/schema.h"

#include <nlohmann/json.hpp>
#include <string>

#include "esscher/config/keys.h"

namespace esscher {
namespace {

Json type(const char* name) { return {{"type", name}}; }

Json reference(std::string_view table) { return {{"$ref", "#/$defs/" + std::string(table)}}; }

Json array_of(Json items) { return {{"type", "array"}, {"items", std::move(items)}}; }

Json one_of(Json choices) { return {{"anyOf", std::move(choices)}}; }

Json words_of(const KeyDeclaration& key) {
  Json words = Json::array();
  for (const std::string_view word : key.words) words.push_back(std::string(word));
  return {{"enum", std::move(words)}};
}

Json shape_of(const KeyDeclaration& key) {
  switch (key.kind) {
    case KeyKind::number:
      return key.words.empty() ? type("number") : one_of({type("number"), words_of(key)});
    case KeyKind::integer: return type("integer");
    case KeyKind::boolean: return type("boolean");
    case KeyKind::word: return words_of(key);
    case KeyKind::text: return type("string");
    case KeyKind::numbers: return array_of(type("number"));
    case KeyKind::words: return array_of(words_of(key));
    case KeyKind::rows: return array_of(array_of(type("number")));
    case KeyKind::matrix:
      return one_of({type("number"), array_of(array_of(type("number"))), reference(key.table)});
    case KeyKind::matrices:
      return one_of({type("number"), array_of(array_of(type("number"))),
                     array_of(array_of(array_of(type("number")))), reference(key.table)});
    case KeyKind::length: return one_of({type("integer"), {{"const", "inf"}}});
    case KeyKind::lengths:
      return one_of(
          {array_of(one_of({type("integer"), {{"const", "inf"}}})), reference(key.table)});
    case KeyKind::table:
      return key.words.empty() ? reference(key.table)
                               : one_of({words_of(key), reference(key.table)});
    case KeyKind::tables: return array_of(reference(key.table));
  }
  return Json::object();
}

Json schema_of(const TableDeclaration& table) {
  Json properties = Json::object();
  for (const KeyDeclaration& key : table.keys) {
    Json property = shape_of(key);
    property["description"] = std::string(key.meaning);
    // Numbers, quoted words and booleans are written alike in TOML and in JSON.
    if (!key.fallback.empty()) property["default"] = Json::parse(key.fallback);
    properties[std::string(key.name)] = std::move(property);
  }
  return {{"type", "object"},
          {"description", std::string(table.meaning)},
          {"properties", std::move(properties)},
          {"additionalProperties", false}};
}

}  // namespace

Json config_schema() {
  Json definitions = Json::object();
  for (const TableDeclaration& table : declared_tables()) {
    definitions[std::string(table.name)] = schema_of(table);
  }
  Json properties = Json::object();
  for (const std::string_view name : root_tables()) {
    properties[std::string(name)] = reference(name);
  }
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", "Configuration of esscher"},
          {"type", "object"},
          {"properties", std::move(properties)},
          {"additionalProperties", false},
          {"$defs", std::move(definitions)}};
}

}  // namespace esscher
