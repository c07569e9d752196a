#include "esscher/config/value.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"

namespace esscher {
namespace {

using Source = std::shared_ptr<const std::string>;

ConfigValue convert(const toml::node& node, const Source& source, bool lines) {
  ConfigValue out;
  out.source = source;
  out.line = lines ? static_cast<int>(node.source().begin.line) : 0;
  if (const auto* table = node.as_table()) {
    ConfigValue::Map map;
    for (const auto& [key, value] : *table) {
      map.emplace(std::string(key.str()), convert(value, source, lines));
    }
    out.data = std::move(map);
  } else if (const auto* array = node.as_array()) {
    ConfigValue::Array values;
    for (const auto& value : *array) values.push_back(convert(value, source, lines));
    out.data = std::move(values);
  } else if (node.is_string()) {
    out.data = node.as_string()->get();
  } else if (node.is_integer()) {
    out.data = node.as_integer()->get();
  } else if (node.is_floating_point()) {
    out.data = node.as_floating_point()->get();
  } else if (node.is_boolean()) {
    out.data = node.as_boolean()->get();
  } else {
    throw ConfigError(out.where() + ": dates and times have no meaning here");
  }
  return out;
}

bool is_bare(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

std::string quote_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      constexpr std::string_view digits = "0123456789ABCDEF";
      out += "\\u00";
      out += digits[static_cast<unsigned char>(c) >> 4];
      out += digits[c & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string key_text(const std::string& key) { return is_bare(key) ? key : quote_text(key); }

std::string number_text(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  std::string out = to_text(x);
  // TOML reads "1" as an integer; a float keeps a point or an exponent.
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

std::string inline_text(const ConfigValue& value) {
  struct Writer {
    std::string operator()(bool x) const { return x ? "true" : "false"; }
    std::string operator()(std::int64_t x) const { return std::to_string(x); }
    std::string operator()(double x) const { return number_text(x); }
    std::string operator()(const std::string& x) const { return quote_text(x); }
    std::string operator()(const ConfigValue::Array& values) const {
      std::string out = "[";
      for (const ConfigValue& item : values) {
        if (out.size() > 1) out += ", ";
        out += inline_text(item);
      }
      return out + "]";
    }
    std::string operator()(const ConfigValue::Map& map) const {
      std::string out = "{";
      for (const auto& [key, item] : map) {
        out += out.size() > 1 ? ", " : " ";
        out += key_text(key) + " = " + inline_text(item);
      }
      return out + (map.empty() ? "}" : " }");
    }
  };
  return std::visit(Writer{}, value.data);
}

bool is_table_array(const ConfigValue& value) {
  const ConfigValue::Array* array = value.array();
  return array != nullptr && !array->empty() &&
         std::all_of(array->begin(), array->end(), [](const ConfigValue& v) { return v.map(); });
}

void write_table(const ConfigValue::Map& map, const std::string& path, std::string& out) {
  for (const auto& [key, value] : map) {
    if (value.map() || is_table_array(value)) continue;
    out += key_text(key) + " = " + inline_text(value) + "\n";
  }
  for (const auto& [key, value] : map) {
    const std::string below = path.empty() ? key_text(key) : path + "." + key_text(key);
    if (const ConfigValue::Map* table = value.map()) {
      out += "\n[" + below + "]\n";
      write_table(*table, below, out);
    } else if (is_table_array(value)) {
      for (const ConfigValue& item : *value.array()) {
        out += "\n[[" + below + "]]\n";
        write_table(*item.map(), below, out);
      }
    }
  }
}

}  // namespace

std::string ConfigValue::where() const {
  const std::string name = source ? *source : "default";
  return line > 0 ? name + ":" + std::to_string(line) : name;
}

std::string ConfigValue::text() const {
  constexpr std::size_t kLongest = 80;
  std::string out = inline_text(*this);
  if (out.size() > kLongest) {
    std::size_t cut = kLongest;
    while (cut > 0 && (static_cast<unsigned char>(out[cut]) & 0xC0) == 0x80) --cut;
    out = out.substr(0, cut) + "...";
  }
  return out;
}

std::string_view ConfigValue::type() const {
  constexpr std::string_view names[] = {"a boolean", "an integer", "a number",
                                        "a string",  "an array",   "a table"};
  return names[data.index()];
}

bool same_data(const ConfigValue& a, const ConfigValue& b) {
  if (a.data.index() != b.data.index()) return false;
  if (const ConfigValue::Map* map = a.map()) {
    const ConfigValue::Map& other = *b.map();
    return map->size() == other.size() &&
           std::equal(map->begin(), map->end(), other.begin(), [](const auto& x, const auto& y) {
             return x.first == y.first && same_data(x.second, y.second);
           });
  }
  if (const ConfigValue::Array* array = a.array()) {
    return std::equal(array->begin(), array->end(), b.array()->begin(), b.array()->end(),
                      same_data);
  }
  if (const double* x = std::get_if<double>(&a.data)) {
    const double y = std::get<double>(b.data);
    return std::isnan(*x) ? std::isnan(y) : *x == y;
  }
  return inline_text(a) == inline_text(b);
}

ConfigValue parse_toml(std::string_view text, const std::string& name) {
  const auto source = std::make_shared<const std::string>(name);
  try {
    return convert(toml::parse(text), source, true);
  } catch (const toml::parse_error& error) {
    throw ConfigError(name + ":" + std::to_string(error.source().begin.line) + ": " +
                      std::string(error.description()));
  }
}

ConfigValue parse_toml_value(std::string_view text, const std::string& source) {
  const auto shared = std::make_shared<const std::string>(source);
  const bool one_line = text.find_first_of("\r\n") == std::string_view::npos;
  if (one_line) {
    try {
      const toml::table table = toml::parse("value = " + std::string(text));
      if (table.size() == 1) return convert(*table.get("value"), shared, false);
    } catch (const toml::parse_error&) {
      // Not a TOML value: a bare word, kept as the text it is.
    }
  }
  ConfigValue out;
  out.data = std::string(text);
  out.source = shared;
  return out;
}

std::string write_toml(const ConfigValue& root) {
  std::string out;
  write_table(*root.map(), "", out);
  return out;
}

}  // namespace esscher
