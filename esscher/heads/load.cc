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
  std::optional<HeadLayout> layout = {};
};

std::optional<HeadLayout> layout_of(const std::string& path, const Metadata& metadata) {
  const auto found = metadata.find("layout");
  if (found == metadata.end()) return std::nullopt;
  try {
    return parse_enum<HeadLayout>(found->second);
  } catch (const Error& error) {
    throw FileError(path + ": __metadata__: " + error.what());
  }
}

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
    const Safetensors found = parse_safetensors(path.string(), file->bytes());
    out.arrays = found.tensors;
    out.layout = layout_of(path.string(), found.metadata);
  } else {
    throw FileError(path.string() +
                    ": expected a .safetensors or .npz file or a directory of .npy files");
  }
  return out;
}

enum Role {
  kQuery,
  kKey,
  kValue,
  kScale,
  kCausal,
  kRotary,
  kSliding,
  kSoftcap,
  kSink,
  kAlibi,
  kMask,
  kRoles
};
constexpr std::array<const char*, kRoles> kRoleNames = {
    "Q", "K", "V", "scale", "causal", "rotary", "sliding", "softcap", "sink", "alibi", "mask"};

std::optional<Role> role_of(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  static const std::map<std::string, Role> words = {
      {"q", kQuery},         {"query", kQuery},     {"queries", kQuery}, {"k", kKey},
      {"key", kKey},         {"keys", kKey},        {"v", kValue},       {"value", kValue},
      {"values", kValue},    {"scale", kScale},     {"causal", kCausal}, {"rotary", kRotary},
      {"sliding", kSliding}, {"softcap", kSoftcap}, {"sink", kSink},     {"alibi", kAlibi},
      {"mask", kMask}};
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

RowSource source(std::string where, HeadSlice slice, std::shared_ptr<const TensorFile> file) {
  return [where = std::move(where), slice = std::move(slice), file = std::move(file)](Index first,
                                                                                      Index count) {
    Matrix out = to_matrix(where, slice.rows, first, count);
    if (!slice.rows.fortran) drop_rows(*file, slice.rows, first, count);
    if (slice.cols == out.cols()) return out;
    return Matrix(out.middleCols(slice.first, slice.cols));
  };
}

// Where one head of a stack stands.
struct Place {
  Index batch = 0, batches = 1;
  Index head = 0, heads = 1;
};

// `file` keeps the bytes of a mask alive.
HeadRules rules_of(const std::string& here, const Group& group, const HeadFileOptions& options,
                   const std::shared_ptr<const TensorFile>& file, const Place& place, Index n,
                   Index n_queries) {
  const auto number = [&](Role role, const std::optional<double>& given) -> std::optional<double> {
    if (given) return given;
    if (!group[role]) return std::nullopt;
    return setting(here + "." + kRoleNames[role], group[role], static_cast<std::size_t>(place.head),
                   static_cast<std::size_t>(place.heads), 0);
  };
  HeadRules rules;
  const double sliding = number(kSliding, options.sliding).value_or(0);
  if (!(sliding >= 0 && sliding <= 1e15 && sliding == std::floor(sliding))) {
    throw FileError(here + ".sliding: " + to_text(sliding) + ", expected a number of keys");
  }
  rules.window = static_cast<Index>(sliding);
  rules.softcap = number(kSoftcap, options.softcap).value_or(0);
  rules.sink = number(kSink, options.sink);
  if (group[kMask]) {
    const Array mask = *group[kMask];
    const MaskPlace at{.batch = place.batch,
                       .batches = place.batches,
                       .head = place.head,
                       .heads = place.heads,
                       .queries = n_queries};
    (void)mask_row(here + ".mask", mask, at, n);
    rules.bias = [here, mask, at, n, file](Index query) {
      MaskPlace one = at;
      one.query = query;
      return mask_row(here + ".mask", mask, one, n);
    };
  }
  return rules;
}

// One head out of the stacks of Q, K and V.
Head head_at(const std::string& path, const std::string& full, const Group& group,
             const std::array<StackedHeads, 3>& stacks, const HeadFileOptions& options,
             const std::shared_ptr<const TensorFile>& file, const Place& place) {
  const std::string here = path + ": head " + full;
  std::array<HeadSlice, 3> tensor;
  std::array<Index, 3> rows{};
  for (const Role role : {kQuery, kKey, kValue}) {
    tensor[role] = stacks[role].at(place.batch, place.head * stacks[role].heads / place.heads);
    rows[role] = matrix_shape(here + "." + kRoleNames[role], tensor[role].rows).rows;
  }
  const std::optional<HeadLayout> layout = options.layout ? options.layout : file->layout;
  const auto shapes = [&] {
    return "Q " + group[kQuery]->shape_text() + ", K " + group[kKey]->shape_text() + ", V " +
           group[kValue]->shape_text() +
           (layout ? " in the layout " + std::string(name(*layout)) : "");
  };
  if (tensor[kQuery].cols != tensor[kKey].cols || rows[kKey] != rows[kValue]) {
    throw FileError(here + ": " + shapes() + ", expected Q [nq,d], K [n,d], V [n,dv]");
  }
  const auto h = static_cast<std::size_t>(place.head);
  const auto heads = static_cast<std::size_t>(place.heads);
  const double natural = 1.0 / std::sqrt(static_cast<double>(tensor[kKey].cols));
  Head head{
      .name = full,
      .n = rows[kKey],
      .n_queries = rows[kQuery],
      .dk = tensor[kKey].cols,
      .dv = tensor[kValue].cols,
      .scale = options.scale.value_or(setting(here + ".scale", group[kScale], h, heads, natural)),
      .causal =
          options.causal.value_or(setting(here + ".causal", group[kCausal], h, heads, 0.0) != 0.0),
      .rotary = options.rotary ? options.rotary : rotary_setting(here + ".rotary", group[kRotary]),
      .rules = rules_of(here, group, options, file, place, rows[kKey], rows[kQuery]),
      .Q = source(here + ".Q", tensor[kQuery], file),
      .K = source(here + ".K", tensor[kKey], file),
      .V = source(here + ".V", tensor[kValue], file)};
  if (head.causal && head.n_queries > head.n) {
    throw FileError(here + ": " + shapes() + ": " + std::to_string(head.n_queries) +
                    " queries of a causal head, expected at most its " + std::to_string(head.n) +
                    " keys");
  }
  check_head(head);
  const bool sloped = options.alibi || group[kAlibi];
  if (!sloped) return head;
  const double slope =
      options.alibi.value_or(setting(here + ".alibi", group[kAlibi], h, heads, 0.0));
  return with_alibi(std::move(head), slope);
}

std::string name_of(const std::string& name, const Place& place) {
  std::string full = name;
  if (place.batches > 1) full += "." + std::to_string(place.batch);
  if (place.batches > 1 || place.heads > 1) full += "." + std::to_string(place.head);
  return full;
}

// The heads of one group of tensors.
void add_heads(const std::string& path, const std::string& name, const Group& group,
               const HeadFileOptions& options, const std::shared_ptr<const TensorFile>& file,
               std::vector<Head>& out) {
  const std::string where = path + ": head " + name;
  const std::optional<HeadLayout> layout = options.layout ? options.layout : file->layout;
  std::array<StackedHeads, 3> stacks;
  for (const Role role : {kQuery, kKey, kValue}) {
    if (!group[role]) throw FileError(where + ": " + kRoleNames[role] + " is missing");
    stacks[role] = unstack_heads(where + "." + kRoleNames[role], *group[role], layout);
  }
  const Index heads = stacks[kQuery].heads;
  const Index batches = stacks[kQuery].batches;
  for (const Role role : {kKey, kValue}) {
    if (stacks[role].heads < 1 || heads % stacks[role].heads != 0) {
      throw FileError(where + ": " + std::to_string(stacks[role].heads) + " heads in " +
                      kRoleNames[role] + " " + group[role]->shape_text() +
                      ", expected a divisor of the " + std::to_string(heads) + " heads in Q " +
                      group[kQuery]->shape_text());
    }
    if (stacks[role].batches != batches) {
      throw FileError(where + ": " + std::to_string(stacks[role].batches) + " batches in " +
                      kRoleNames[role] + " " + group[role]->shape_text() + ", expected the " +
                      std::to_string(batches) + " of Q " + group[kQuery]->shape_text());
    }
  }
  for (Index b = 0; b < batches; ++b) {
    for (Index h = 0; h < heads; ++h) {
      const Place place{.batch = b, .batches = batches, .head = h, .heads = heads};
      out.push_back(head_at(path, name_of(name, place), group, stacks, options, file, place));
    }
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
