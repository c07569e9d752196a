#include "esscher/io/matrix.h"

#include <map>
#include <string>

#include "esscher/base/error.h"
#include "esscher/io/csv.h"
#include "esscher/io/npy.h"
#include "esscher/io/npz.h"
#include "esscher/io/safetensors.h"

namespace esscher {
namespace {

// Splits "a.npz#x" into {"a.npz", "x"}. A '#' elsewhere belongs to the file name.
std::pair<std::string, std::string> split_member(const std::string& name) {
  for (const std::string_view extension : {".npz#", ".safetensors#"}) {
    const std::size_t at = name.find(extension);
    if (at == std::string::npos) continue;
    const std::size_t mark = at + extension.size() - 1;
    return {name.substr(0, mark), name.substr(mark + 1)};
  }
  return {name, ""};
}

Matrix pick(const std::string& file, const std::string& member,
            const std::map<std::string, Array>& arrays) {
  if (member.empty() && arrays.size() == 1) return to_matrix(file, arrays.begin()->second);
  const auto found = arrays.find(member);
  if (found != arrays.end()) return to_matrix(file + "#" + member, found->second);
  std::string known;
  for (const auto& [key, array] : arrays) known += (known.empty() ? "" : ", ") + key;
  const std::string problem = member.empty() ? "name an array as " + file + "#NAME"
                                             : "there is no array \"" + member + "\"";
  throw FileError(file + ": " + problem + "; the file has: " + known.substr(0, 300));
}

}  // namespace

Matrix read_matrix(const std::filesystem::path& path) {
  const auto [file, member] = split_member(path.string());
  const std::string extension = std::filesystem::path(file).extension().string();
  const bool is_text = extension == ".csv" || extension == ".txt" || extension == ".tsv";
  if (!is_text && extension != ".npy" && extension != ".npz" && extension != ".safetensors") {
    throw FileError(file + ": unknown kind of file \"" + extension +
                    "\", expected .npy, .npz, .csv, .txt, .tsv or .safetensors");
  }
  const MappedFile mapped(file);
  if (is_text) return parse_csv(file, mapped.bytes());
  if (extension == ".npy") return to_matrix(file, parse_npy(file, mapped.bytes()));
  if (extension == ".npz") return pick(file, member, parse_npz(file, mapped.bytes()));
  return pick(file, member, parse_safetensors(file, mapped.bytes()).tensors);
}

}  // namespace esscher
