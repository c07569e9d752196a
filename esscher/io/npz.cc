#include "esscher/io/npz.h"

#include <zlib.h>

#include <limits>

#include "esscher/base/error.h"
#include "esscher/io/npy.h"

namespace esscher {
namespace {

constexpr std::uint32_t kLocalMark = 0x04034b50;
constexpr std::uint32_t kCentralMark = 0x02014b50;
constexpr std::uint32_t kEndMark = 0x06054b50;
constexpr std::uint32_t kEnd64Mark = 0x06064b50;
constexpr std::uint32_t kLocator64Mark = 0x07064b50;
constexpr std::size_t kEndSize = 22;
constexpr std::size_t kLocatorSize = 20;
constexpr std::uint32_t kIn64 = 0xFFFFFFFF;  // the value stands in the zip64 record
constexpr std::uint64_t kBestRatio = 1032;   // deflate never compresses more than this
constexpr std::uint16_t kNamesAreUtf8 = 1 << 11;

// Little-endian fields of one archive. Every access is checked.
class Zip {
 public:
  Zip(std::string_view where, Bytes bytes) : where_(where), bytes_(bytes) {}

  [[noreturn]] void fail(const std::string& what) const { throw FileError(where_ + ": " + what); }

  Bytes piece(std::uint64_t at, std::uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) fail("is truncated or has a bad offset");
    return bytes_.subspan(at, size);
  }

  std::uint64_t get(std::uint64_t at, std::size_t size) const {
    const Bytes field = piece(at, size);
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;)
      value = value << 8 | std::to_integer<std::uint64_t>(field[i]);
    return value;
  }

  std::uint64_t size() const { return bytes_.size(); }
  const std::string& where() const { return where_; }

 private:
  std::string where_;
  Bytes bytes_;
};

struct Directory {
  std::uint64_t entries;
  std::uint64_t offset;
};

Directory find_directory(const Zip& zip) {
  if (zip.size() < kEndSize) zip.fail("is not a .npz file (too short)");
  // Only a comment of at most 65535 bytes may follow the end record.
  const std::uint64_t lowest =
      zip.size() - kEndSize - std::min<std::uint64_t>(zip.size() - kEndSize, 65535);
  for (std::uint64_t at = zip.size() - kEndSize + 1; at-- > lowest;) {
    if (zip.get(at, 4) != kEndMark || zip.get(at + 20, 2) != zip.size() - at - kEndSize) continue;
    Directory out{zip.get(at + 10, 2), zip.get(at + 16, 4)};
    if (out.entries != 0xFFFF && out.offset != kIn64) return out;
    if (at < kLocatorSize || zip.get(at - kLocatorSize, 4) != kLocator64Mark) return out;
    const std::uint64_t end64 = zip.get(at - kLocatorSize + 8, 8);
    if (zip.get(end64, 4) != kEnd64Mark) zip.fail("has a damaged zip64 record");
    return {zip.get(end64 + 32, 8), zip.get(end64 + 48, 8)};
  }
  zip.fail("is not a .npz file (no zip directory)");
}

struct Member {
  std::string name;
  std::uint64_t method;
  std::uint64_t crc;
  std::uint64_t packed_size;
  std::uint64_t size;
  std::uint64_t header;  // offset of the local header
};

// Sizes that read 0xFFFFFFFF stand in the zip64 extra field (id 1), in this order.
void read_zip64(const Zip& zip, std::uint64_t at, std::uint64_t length, Member& member) {
  const std::uint64_t end = at + length;
  while (at + 4 <= end) {
    const std::uint64_t id = zip.get(at, 2);
    const std::uint64_t size = zip.get(at + 2, 2);
    at += 4;
    if (id == 1) {
      for (std::uint64_t* field : {&member.size, &member.packed_size, &member.header}) {
        if (*field != kIn64) continue;
        *field = zip.get(at, 8);
        at += 8;
      }
      return;
    }
    at += size;
  }
}

// Reads the entry at `at` and moves `at` to the next entry.
Member read_member(const Zip& zip, std::uint64_t& at) {
  if (zip.get(at, 4) != kCentralMark) zip.fail("has a damaged zip directory");
  const std::uint64_t flags = zip.get(at + 8, 2);
  const std::uint64_t name_size = zip.get(at + 28, 2);
  const std::uint64_t extra_size = zip.get(at + 30, 2);
  const std::uint64_t comment_size = zip.get(at + 32, 2);
  Member member{std::string(as_text(zip.piece(at + 46, name_size))),
                zip.get(at + 10, 2),
                zip.get(at + 16, 4),
                zip.get(at + 20, 4),
                zip.get(at + 24, 4),
                zip.get(at + 42, 4)};
  if ((flags & 1) != 0) zip.fail("member \"" + member.name + "\" is encrypted");
  zip.piece(at + 46 + name_size, extra_size);
  read_zip64(zip, at + 46 + name_size, extra_size, member);
  at += 46 + name_size + extra_size + comment_size;
  return member;
}

std::vector<std::byte> inflate_bytes(const Zip& zip, const Member& member, Bytes packed) {
  if (member.size / kBestRatio > packed.size() + 1) {
    zip.fail("member \"" + member.name + "\" claims " + std::to_string(member.size) +
             " bytes from " + std::to_string(packed.size()));
  }
  std::vector<std::byte> out(member.size);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  // zlib counts in 32 bits, so input and output are passed in pieces.
  const auto piece = [](std::size_t left) {
    return static_cast<uInt>(std::min<std::size_t>(left, 1U << 30));
  };
  std::size_t in = 0;
  std::size_t made = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + in));
    stream.avail_in = piece(packed.size() - in);
    std::byte spare{};  // room for the end-of-stream code when the output is complete
    stream.next_out = reinterpret_cast<Bytef*>(made < out.size() ? out.data() + made : &spare);
    stream.avail_out = made < out.size() ? piece(out.size() - made) : 1;
    const uInt in_before = stream.avail_in;
    const uInt out_before = stream.avail_out;
    status = ::inflate(&stream, Z_NO_FLUSH);
    in += in_before - stream.avail_in;
    made += out_before - stream.avail_out;
    if (made > out.size()) break;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || made != out.size() || in != packed.size()) {
    zip.fail("member \"" + member.name + "\" is damaged");
  }
  return out;
}

void check_crc(const Zip& zip, const Member& member, Bytes data) {
  const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size());
  if (crc != member.crc) zip.fail("member \"" + member.name + "\" has a wrong checksum");
}

Array read_array(const Zip& zip, const Member& member) {
  if (zip.get(member.header, 4) != kLocalMark) zip.fail("has a damaged member header");
  const std::uint64_t start =
      member.header + 30 + zip.get(member.header + 26, 2) + zip.get(member.header + 28, 2);
  const Bytes packed = zip.piece(start, member.packed_size);
  const std::string where = zip.where() + "#" + member.name;
  if (member.method == 0) {
    if (member.size != member.packed_size) zip.fail("member \"" + member.name + "\" is damaged");
    check_crc(zip, member, packed);
    return parse_npy(where, packed);
  }
  if (member.method != Z_DEFLATED) {
    zip.fail("member \"" + member.name + "\" uses compression method " +
             std::to_string(member.method) + ", expected stored or deflate");
  }
  auto storage = std::make_shared<std::vector<std::byte>>(inflate_bytes(zip, member, packed));
  check_crc(zip, member, *storage);
  Array array = parse_npy(where, *storage);
  array.owner = std::move(storage);
  return array;
}

void put(std::vector<std::byte>& out, std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) out.push_back(std::byte(value >> (8 * i) & 255));
}

void put(std::vector<std::byte>& out, Bytes bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// The fields that the local and the central header share.
void put_common(std::vector<std::byte>& out, const std::string& name, const Member& member) {
  put(out, 20, 2);
  put(out, kNamesAreUtf8, 2);
  put(out, 0, 2);
  put(out, 0x00210000, 4);  // always 1 January 1980, so that the file depends on its contents alone
  put(out, member.crc, 4);
  put(out, member.size, 4);
  put(out, member.size, 4);
  put(out, name.size(), 2);
  put(out, 0, 2);
}

}  // namespace

std::map<std::string, Array> parse_npz(std::string_view where, Bytes bytes) {
  const Zip zip(where, bytes);
  const Directory directory = find_directory(zip);
  std::map<std::string, Array> out;
  std::uint64_t at = directory.offset;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    const Member member = read_member(zip, at);
    std::string_view key = member.name;
    if (!key.ends_with(".npy")) zip.fail("member \"" + member.name + "\" is not a .npy file");
    key.remove_suffix(4);
    if (out.contains(std::string(key))) zip.fail("has two members \"" + member.name + "\"");
    out.emplace(key, read_array(zip, member));
  }
  return out;
}

std::vector<std::byte> encode_npz(const std::map<std::string, Array>& arrays) {
  std::vector<std::byte> out;
  std::vector<std::byte> directory;
  for (const auto& [key, array] : arrays) {
    const std::vector<std::byte> npy = encode_npy(array);
    const std::string name = key + ".npy";
    const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(npy.data()), npy.size());
    const Member member{name, 0, crc, npy.size(), npy.size(), out.size()};
    if (name.size() > 65535) throw_argument("encode_npz", "name", "too long", "65531 bytes");
    put(directory, kCentralMark, 4);
    put(directory, 20, 2);
    put_common(directory, name, member);
    put(directory, 0, 8);
    put(directory, 0, 2);
    put(directory, member.header, 4);
    put(directory, as_bytes(name));
    put(out, kLocalMark, 4);
    put_common(out, name, member);
    put(out, as_bytes(name));
    put(out, npy);
  }
  const std::uint64_t offset = out.size();
  if (arrays.size() >= 0xFFFF || offset + directory.size() >= kIn64) {
    throw_argument("encode_npz", "arrays", "too large", "less than 4 GiB and 65535 arrays");
  }
  put(out, directory);
  put(out, kEndMark, 4);
  put(out, 0, 4);
  put(out, arrays.size(), 2);
  put(out, arrays.size(), 2);
  put(out, directory.size(), 4);
  put(out, offset, 4);
  put(out, 0, 2);
  return out;
}

}  // namespace esscher
