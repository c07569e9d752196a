#include "esscher/io/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "esscher/base/error.h"
#include "esscher/io/strict_json.h"

namespace esscher {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestHeader = 100'000'000;  // the limit of the reference implementation
constexpr const char* kMetadata = "__metadata__";

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

[[noreturn]] void fail(std::string_view where, const std::string& what) {
  throw FileError(std::string(where) + ": " + what);
}

DType dtype_of(const std::string& where, const Json& entry) {
  const Json& text = entry.at("dtype");
  if (text.is_string()) {
    for (int i = 0; i <= static_cast<int>(DType::boolean); ++i) {
      const auto dtype = static_cast<DType>(i);
      if (text.get_ref<const std::string&>() == name(dtype)) return dtype;
    }
  }
  fail(where,
       "dtype is " + dump(text) + ", expected one of F16, BF16, F32, F64, I8..I64, U8..U64, BOOL");
}

std::vector<std::int64_t> sizes_of(const std::string& where, const Json& entry, const char* key) {
  const Json& list = entry.at(key);
  std::vector<std::int64_t> out;
  if (list.is_array()) {
    for (const Json& item : list) {
      // Above 2^63 the JSON reader makes an unsigned or floating number; both are refused here.
      const bool fits =
          item.is_number_integer() &&
          (!item.is_number_unsigned() || item.get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
      if (!fits || item.get<std::int64_t>() < 0) break;
      out.push_back(item.get<std::int64_t>());
    }
    if (out.size() == list.size()) return out;
  }
  fail(where, std::string(key) + " is " + dump(list).substr(0, 80) +
                  ", expected an array of integers >= 0 below 2^63");
}

Array tensor_of(const std::string& where, const Json& entry, Bytes data) {
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") ||
      !entry.contains("shape") || !entry.contains("data_offsets")) {
    fail(where, "expected exactly the keys dtype, shape, data_offsets");
  }
  Array array;
  array.dtype = dtype_of(where, entry);
  array.shape = sizes_of(where, entry, "shape");
  const std::vector<std::int64_t> offsets = sizes_of(where, entry, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1] ||
      static_cast<std::size_t>(offsets[1]) > data.size()) {
    fail(where, "data_offsets are " + dump(entry.at("data_offsets")) +
                    ", expected [begin, end] in " + std::to_string(data.size()) + " bytes of data");
  }
  const auto size = static_cast<std::size_t>(offsets[1] - offsets[0]);
  const std::size_t expected = byte_count(where, array.dtype, array.shape);
  if (size != expected) {
    fail(where, "shape " + array.shape_text() + " needs " + std::to_string(expected) +
                    " bytes, data_offsets give " + std::to_string(size));
  }
  array.data = data.subspan(static_cast<std::size_t>(offsets[0]), size);
  return array;
}

Metadata metadata_of(std::string_view where, const Json& entry) {
  Metadata out;
  if (!entry.is_object()) fail(where, "__metadata__ is not an object of strings");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) fail(where, "__metadata__." + key + " is not a string");
    out[key] = value.get<std::string>();
  }
  return out;
}

void check_cover(std::string_view where, const std::map<std::string, Array>& tensors, Bytes data) {
  std::vector<std::pair<const std::byte*, const std::string*>> order;
  for (const auto& [key, array] : tensors) {
    if (!array.data.empty()) order.emplace_back(array.data.data(), &key);
  }
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return std::less<>{}(a.first, b.first); });
  const std::byte* end = data.data();
  for (const auto& [begin, key] : order) {
    if (begin != end) {
      fail(where, "tensor \"" + *key + "\" " + (begin < end ? "overlaps" : "leaves a hole after") +
                      " the tensor before it");
    }
    end = begin + tensors.at(*key).data.size();
  }
  if (end != data.data() + data.size()) {
    fail(where,
         std::to_string(data.data() + data.size() - end) + " bytes at the end belong to no tensor");
  }
}

}  // namespace

Safetensors parse_safetensors(std::string_view where, Bytes bytes) {
  if (bytes.size() < 8) {
    fail(where, "has " + std::to_string(bytes.size()) + " bytes, too few for .safetensors");
  }
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  if (length > bytes.size() - 8 || length > kLongestHeader) {
    fail(where, "header length is " + std::to_string(length) + ", the file has " +
                    std::to_string(bytes.size() - 8) + " bytes left");
  }
  const Bytes data = bytes.subspan(8 + length);
  const std::string_view text = as_text(bytes.subspan(8, length));
  check_strict_json(where, text);
  const Json header = Json::parse(text.begin(), text.end());
  if (!header.is_object()) fail(where, "header is not a JSON object");
  Safetensors out;
  for (const auto& [key, entry] : header.items()) {
    if (key == kMetadata) {
      out.metadata = metadata_of(where, entry);
    } else {
      const std::string place = std::string(where) + ": tensor \"" + key + "\"";
      out.tensors.emplace(key, tensor_of(place, entry, data));
    }
  }
  check_cover(where, out.tensors, data);
  return out;
}

std::vector<std::byte> encode_safetensors(const std::map<std::string, Array>& tensors,
                                          const Metadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  std::size_t offset = 0;
  for (const auto& [key, array] : tensors) {
    if (array.fortran) throw_argument("encode_safetensors", key, "in Fortran order", "C order");
    if (key == kMetadata) throw_argument("encode_safetensors", "name", key, "another name");
    header[key] = {{"dtype", name(array.dtype)},
                   {"shape", array.shape},
                   {"data_offsets", {offset, offset + array.data.size()}}};
    offset += array.data.size();
  }
  std::string text = dump(header);
  text.append((8 - text.size() % 8) % 8, ' ');  // data starts at a multiple of 8
  std::vector<std::byte> out;
  out.reserve(8 + text.size() + offset);
  for (std::size_t i = 0; i < 8; ++i) out.push_back(std::byte(text.size() >> (8 * i) & 255));
  const Bytes front = as_bytes(text);
  out.insert(out.end(), front.begin(), front.end());
  for (const auto& [key, array] : tensors) {
    out.insert(out.end(), array.data.begin(), array.data.end());
  }
  return out;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : name_(path.string()), file_(path), content_(parse_safetensors(name_, file_.bytes())) {}

bool SafetensorsFile::has(const std::string& tensor) const {
  return content_.tensors.contains(tensor);
}

const Array& SafetensorsFile::array(const std::string& tensor) const {
  const auto found = content_.tensors.find(tensor);
  if (found != content_.tensors.end()) return found->second;
  std::string known;
  for (const auto& [key, value] : content_.tensors) {
    if (known.size() > 200) {
      known += ", ...";
      break;
    }
    known += (known.empty() ? "" : ", ") + key;
  }
  fail(name_, "has no tensor \"" + tensor + "\", it has: " + known);
}

Matrix SafetensorsFile::matrix(const std::string& tensor) const {
  return to_matrix(name_ + "#" + tensor, array(tensor));
}

}  // namespace esscher
