#include "esscher/io/npy.h"

#include <charconv>
#include <cstring>
#include <optional>

#include "esscher/base/error.h"

namespace esscher {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMostDimensions = 32;  // NumPy's own limit

struct TypeName {
  std::string_view descr;
  DType dtype;
};
constexpr TypeName kTypes[] = {
    {"<f2", DType::f16}, {"<f4", DType::f32}, {"<f8", DType::f64}, {"|i1", DType::i8},
    {"<i2", DType::i16}, {"<i4", DType::i32}, {"<i8", DType::i64}, {"|u1", DType::u8},
    {"<u2", DType::u16}, {"<u4", DType::u32}, {"<u8", DType::u64}, {"|b1", DType::boolean},
};

// Reads the Python dictionary of the header, which must have exactly the three keys, in any order.
class HeaderParser {
 public:
  HeaderParser(std::string_view where, std::string_view text) : where_(where), text_(text) {}

  Array parse() {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !dtype_) {
        dtype_ = type();
      } else if (key == "fortran_order" && !fortran_) {
        fortran_ = boolean();
      } else if (key == "shape" && !shape_) {
        shape_ = tuple();
      } else {
        fail("unknown or repeated header key '" + std::string(key) + "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!text_.empty()) fail("text after the header dictionary");
    if (!dtype_ || !fortran_ || !shape_) fail("header lacks descr, fortran_order or shape");
    Array out;
    out.dtype = *dtype_;
    out.fortran = *fortran_;
    out.shape = *shape_;
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw FileError(where_ + ": " + what); }

  void skip_space() {
    const std::size_t n = text_.find_first_not_of(" \t\r\n");
    text_.remove_prefix(std::min(n, text_.size()));
  }

  bool accept(char c) {
    skip_space();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail(std::string("header is malformed, expected '") + c + "'");
  }

  std::string_view quoted() {
    skip_space();
    const char mark = text_.empty() ? '\0' : text_.front();
    if (mark != '\'' && mark != '"') fail("header is malformed, expected a string");
    const std::size_t end = text_.find(mark, 1);
    if (end == std::string_view::npos) fail("header is malformed, unfinished string");
    const std::string_view out = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return out;
  }

  DType type() {
    if (accept('[')) fail("descr is a structured type, expected plain numbers");
    const std::string_view descr = quoted();
    for (const TypeName& known : kTypes) {
      if (known.descr == descr) return known.dtype;
    }
    const std::string shown = "descr is '" + std::string(descr) + "'";
    if (descr.find('O') != std::string_view::npos) {
      fail(shown + ", a pickled object array; save plain numbers instead");
    }
    if (descr.starts_with('>')) fail(shown + ", big-endian; save it little-endian");
    fail(shown + ", expected a real, integer or boolean type such as '<f8'");
  }

  bool boolean() {
    skip_space();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return value;
      }
    }
    fail("fortran_order is not True or False");
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> out;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::int64_t n = -1;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), n);
      if (error != std::errc{} || n < 0) fail("shape is not a tuple of integers >= 0 below 2^63");
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      out.push_back(n);
      if (out.size() > kMostDimensions) fail("shape has more than 32 dimensions");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return out;
  }

  std::string where_;
  std::string_view text_;
  std::optional<DType> dtype_;
  std::optional<bool> fortran_;
  std::optional<std::vector<std::int64_t>> shape_;
};

std::string header_text(const Array& array) {
  std::string_view descr;
  for (const TypeName& known : kTypes) {
    if (known.dtype == array.dtype) descr = known.descr;
  }
  if (descr.empty()) {
    throw CapabilityError("encode_npy: .npy has no name for " + std::string(name(array.dtype)) +
                          ", use .safetensors");
  }
  std::string out = "{'descr': '" + std::string(descr) + "', 'fortran_order': ";
  out += array.fortran ? "True, 'shape': (" : "False, 'shape': (";
  for (const std::int64_t n : array.shape) out.append(std::to_string(n)).append(", ");
  return out + "), }";
}

}  // namespace

Array parse_npy(std::string_view where, Bytes bytes) {
  const auto fail = [&](const std::string& what) {
    throw FileError(std::string(where) + ": " + what);
  };
  if (bytes.size() < 10) fail("has " + std::to_string(bytes.size()) + " bytes, too few for .npy");
  if (as_text(bytes).substr(0, kMagic.size()) != kMagic) fail("is not a .npy file (wrong magic)");
  const int major = std::to_integer<int>(bytes[6]);
  if (major < 1 || major > 3) {
    fail("has .npy format version " + std::to_string(major) + ", expected 1, 2 or 3");
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t start = 8 + length_bytes;
  if (bytes.size() < start) fail("is truncated in the header");
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) {
    length = length << 8 | std::to_integer<std::size_t>(bytes[8 + i]);
  }
  if (length > bytes.size() - start) {
    fail("is truncated: header length is " + std::to_string(length) + ", the file has " +
         std::to_string(bytes.size() - start) + " bytes left");
  }
  Array array = HeaderParser(where, as_text(bytes.subspan(start, length))).parse();
  array.data = bytes.subspan(start + length);
  const std::size_t expected = byte_count(where, array.dtype, array.shape);
  if (array.data.size() != expected) {
    fail("shape " + array.shape_text() + " needs " + std::to_string(expected) +
         " bytes of data, the file has " + std::to_string(array.data.size()));
  }
  return array;
}

std::vector<std::byte> encode_npy(const Array& array) {
  std::string header = header_text(array);
  const bool is_long = header.size() + 64 > 65535;
  const std::size_t start = is_long ? 12 : 10;
  // Data starts at a multiple of 64 bytes, as NumPy writes it, so that a mapped file is aligned.
  header.append(63 - (start + header.size()) % 64, ' ');
  header += '\n';
  std::string prefix(kMagic);
  prefix += is_long ? '\2' : '\1';
  prefix += '\0';
  for (std::size_t i = 0; i < start - 8; ++i) {
    prefix += static_cast<char>(header.size() >> (8 * i) & 255);
  }
  const Bytes front = as_bytes(prefix);
  const Bytes middle = as_bytes(header);
  std::vector<std::byte> out(front.begin(), front.end());
  out.reserve(front.size() + middle.size() + array.data.size());
  out.insert(out.end(), middle.begin(), middle.end());
  out.insert(out.end(), array.data.begin(), array.data.end());
  return out;
}

void write_npy(const std::filesystem::path& path, const MatrixView& values) {
  write_file(path, encode_npy(array_of(values)));
}

NpyReader::NpyReader(const std::filesystem::path& path)
    : name_(path.string()),
      file_(path),
      array_(parse_npy(name_, file_.bytes())),
      shape_(matrix_shape(name_, array_)) {}

Matrix NpyReader::read(Index first, Index n) const { return to_matrix(name_, array_, first, n); }

std::span<const float> NpyReader::floats() const {
  const auto address = reinterpret_cast<std::uintptr_t>(array_.data.data());
  const bool row_order = !array_.fortran || shape_.cols == 1 || shape_.rows == 1;
  if (array_.dtype != DType::f32 || !row_order || address % alignof(float) != 0) return {};
  return {reinterpret_cast<const float*>(array_.data.data()), array_.count()};
}

}  // namespace esscher
