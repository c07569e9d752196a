#include "esscher/heads/load.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/io/drop_pages.h"
#include "esscher/io/npy.h"
#include "esscher/io/npz.h"
#include "esscher/io/safetensors.h"

namespace esscher {
namespace {

// Arrays by name, and what keeps their bytes alive.
struct TensorFile {
  std::map<std::string, Array> arrays;
  std::vector<std::shared_ptr<const MappedFile>> owners;
};

TensorFile open_tensors(const std::filesystem::path& path) {
  TensorFile out;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().extension() != ".npy") continue;
      const auto file = std::make_shared<const MappedFile>(entry.path());
      out.arrays.emplace(entry.path().stem().string(),
                         parse_npy(entry.path().string(), file->bytes()));
      out.owners.push_back(file);
    }
    return out;
  }
  const auto file = std::make_shared<const MappedFile>(path);
  out.owners.push_back(file);
  if (path.extension() == ".npz") {
    out.arrays = parse_npz(path.string(), file->bytes());
  } else if (path.extension() == ".safetensors") {
    out.arrays = parse_safetensors(path.string(), file->bytes()).tensors;
  } else {
    throw FileError(path.string() +
                    ": expected a .safetensors or .npz file or a directory of .npy files");
  }
  return out;
}

enum Role { kQuery, kKey, kValue, kScale, kCausal, kRotary, kRoles };
constexpr std::array<const char*, kRoles> kRoleNames = {"Q", "K", "V", "scale", "causal", "rotary"};

std::optional<Role> role_of(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  static const std::map<std::string, Role> words = {
      {"q", kQuery},      {"query", kQuery}, {"queries", kQuery}, {"k", kKey},
      {"key", kKey},      {"keys", kKey},    {"v", kValue},       {"value", kValue},
      {"values", kValue}, {"scale", kScale}, {"causal", kCausal}, {"rotary", kRotary}};
  const auto found = words.find(word);
  if (found == words.end()) return std::nullopt;
  return found->second;
}

using Group = std::array<std::optional<Array>, kRoles>;

std::map<std::string, Group> group_by_head(const std::string& path, const TensorFile& file,
                                           const std::string& stem) {
  std::map<std::string, Group> groups;
  for (const auto& [name, array] : file.arrays) {
    const std::size_t cut = name.find_last_of("./_");
    const std::string head = cut == std::string::npos ? stem : name.substr(0, cut);
    const auto role = role_of(cut == std::string::npos ? name : name.substr(cut + 1));
    if (!role) continue;
    std::optional<Array>& place = groups[head][*role];
    if (place) {
      throw FileError(path + ": head " + head + ": two tensors for " + kRoleNames[*role] +
                      ", the second named " + name);
    }
    place = array;
  }
  return groups;
}

// [n,d] or [h,n,d] (after dropping leading ones of a 4-d array) as h matrices.
std::vector<Array> unstack(const std::string& where, Array array) {
  while (array.shape.size() > 3 && array.shape.front() == 1) array.shape.erase(array.shape.begin());
  if (array.shape.size() == 2) return {array};
  if (array.shape.size() != 3 || array.fortran) {
    throw FileError(where + ": shape " + array.shape_text() +
                    ", expected [n,d] or stacked heads [h,n,d] in C order");
  }
  std::vector<Array> out;
  const auto h = static_cast<std::size_t>(array.shape[0]);
  const std::size_t bytes = h == 0 ? 0 : array.data.size() / h;
  for (std::size_t i = 0; i < h; ++i) {
    Array one = array;
    one.shape.erase(one.shape.begin());
    one.data = array.data.subspan(i * bytes, bytes);
    out.push_back(std::move(one));
  }
  return out;
}

// One number, or the one of `head` out of `heads`.
double setting(const std::string& where, const std::optional<Array>& array, std::size_t head,
               std::size_t heads, double fallback) {
  if (!array) return fallback;
  if (array->count() != 1 && array->count() != heads) {
    throw FileError(where + ": " + std::to_string(array->count()) + " numbers, expected 1 or " +
                    std::to_string(heads));
  }
  const double value = array->at(array->count() == 1 ? 0 : head);
  if (!std::isfinite(value)) throw FileError(where + ": " + to_text(value) + ", expected a number");
  return value;
}

// The four numbers of X.rotary.
std::optional<Rotary> rotary_setting(const std::string& where, const std::optional<Array>& array) {
  if (!array) return std::nullopt;
  if (array->count() != 4) {
    throw FileError(where + ": " + std::to_string(array->count()) +
                    " numbers, expected 4: base, pairs (0 or 1), dims, position of the first key");
  }
  const auto whole = [&](std::size_t i, double most, const char* what) {
    const double value = array->at(i);
    if (!(value >= 0 && value <= most) || value != std::floor(value)) {
      throw FileError(where + ": " + to_text(value) + " for " + what +
                      ", expected a whole number " + "from 0 to " + to_text(most));
    }
    return static_cast<Index>(value);
  };
  return Rotary{.base = array->at(0),
                .pairs = whole(1, 1, "pairs") == 0 ? RotaryPairs::interleaved : RotaryPairs::halves,
                .dims = whole(2, 1e6, "dims"),
                .first = whole(3, 1e15, "the first position")};
}

// Drops rows of a large tensor from memory once they were read, because a pass may not need them
// again.
void drop_rows(const TensorFile& file, const Array& array, Index first, Index count) {
  constexpr std::size_t kLarge = std::size_t{64} << 20;
  if (array.data.size() < kLarge) return;
  const std::size_t row = array.data.size() / static_cast<std::size_t>(array.shape.front());
  for (const auto& mapped : file.owners) {
    drop_pages(*mapped, array.data.subspan(static_cast<std::size_t>(first) * row,
                                           static_cast<std::size_t>(count) * row));
  }
}

RowSource source(std::string where, Array array, std::shared_ptr<const TensorFile> file) {
  return [where = std::move(where), array = std::move(array), file = std::move(file)](Index first,
                                                                                      Index count) {
    Matrix out = to_matrix(where, array, first, count);
    if (!array.fortran) drop_rows(*file, array, first, count);
    return out;
  };
}

// The heads of one group of tensors.
void add_heads(const std::string& path, const std::string& name, const Group& group,
               const HeadFileOptions& options, const std::shared_ptr<const TensorFile>& file,
               std::vector<Head>& out) {
  const std::string where = path + ": head " + name;
  std::array<std::vector<Array>, 3> parts;
  for (const Role role : {kQuery, kKey, kValue}) {
    if (!group[role]) throw FileError(where + ": " + kRoleNames[role] + " is missing");
    parts[role] = unstack(where + "." + kRoleNames[role], *group[role]);
  }
  const std::size_t heads = parts[kQuery].size();
  for (const Role role : {kKey, kValue}) {
    if (parts[role].empty() || heads % parts[role].size() != 0) {
      throw FileError(where + ": " + std::to_string(parts[role].size()) + " heads in " +
                      kRoleNames[role] + ", expected a divisor of the " + std::to_string(heads) +
                      " heads in Q");
    }
  }
  for (std::size_t h = 0; h < heads; ++h) {
    const std::string full = heads == 1 ? name : name + "." + std::to_string(h);
    const std::string here = path + ": head " + full;
    std::array<Array, 3> tensor;
    std::array<MatrixShape, 3> shape{};
    for (const Role role : {kQuery, kKey, kValue}) {
      tensor[role] = parts[role][h * parts[role].size() / heads];
      shape[role] = matrix_shape(here + "." + kRoleNames[role], tensor[role]);
    }
    if (shape[kQuery].cols != shape[kKey].cols || shape[kKey].rows != shape[kValue].rows) {
      throw FileError(here + ": Q " + tensor[kQuery].shape_text() + ", K " +
                      tensor[kKey].shape_text() + ", V " + tensor[kValue].shape_text() +
                      ", expected Q [nq,d], K [n,d], V [n,dv]");
    }
    const double natural = 1.0 / std::sqrt(static_cast<double>(shape[kKey].cols));
    Head head{
        .name = full,
        .n = shape[kKey].rows,
        .n_queries = shape[kQuery].rows,
        .dk = shape[kKey].cols,
        .dv = shape[kValue].cols,
        .scale = options.scale.value_or(setting(here + ".scale", group[kScale], h, heads, natural)),
        .causal = options.causal.value_or(
            setting(here + ".causal", group[kCausal], h, heads, 0.0) != 0.0),
        .rotary =
            options.rotary ? options.rotary : rotary_setting(here + ".rotary", group[kRotary]),
        .Q = source(here + ".Q", tensor[kQuery], file),
        .K = source(here + ".K", tensor[kKey], file),
        .V = source(here + ".V", tensor[kValue], file)};
    check_head(head);
    out.push_back(std::move(head));
  }
}

}  // namespace

std::vector<Head> load_heads(const std::filesystem::path& path, const HeadFileOptions& options) {
  const auto file = std::make_shared<const TensorFile>(open_tensors(path));
  std::vector<Head> heads;
  for (const auto& [name, group] : group_by_head(path.string(), *file, path.stem().string())) {
    add_heads(path.string(), name, group, options, file, heads);
  }
  if (heads.empty()) {
    throw FileError(path.string() +
                    ": no tensors named like X.Q, X.K, X.V, expected at least one head");
  }
  return heads;
}

}  // namespace esscher
