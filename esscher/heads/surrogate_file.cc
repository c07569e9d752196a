#include "esscher/heads/surrogate_file.h"

#include <charconv>
#include <map>

#include "esscher/base/error.h"
#include "esscher/io/safetensors.h"

namespace esscher {
namespace {

// k matrices of one shape as an array [k,rows,cols].
Array stack(const std::vector<Matrix>& matrices) {
  const Index rows = matrices.front().rows();
  const Index cols = matrices.front().cols();
  Matrix flat(static_cast<Index>(matrices.size()) * rows, cols);
  for (std::size_t c = 0; c < matrices.size(); ++c) {
    flat.middleRows(static_cast<Index>(c) * rows, rows) = matrices[c];
  }
  Array array = array_of(flat);
  array.shape = {static_cast<std::int64_t>(matrices.size()), rows, cols};
  return array;
}

std::vector<Matrix> unstack(const SafetensorsFile& file, const std::string& name) {
  Array array = file.array(name);
  if (array.shape.size() != 3 || array.shape[0] < 1) {
    throw FileError(name + ": shape " + array.shape_text() + ", expected [k,rows,cols]");
  }
  const Index rows = array.shape[1];
  const Index count = array.shape[0];
  array.shape = {count * rows, array.shape[2]};
  const Matrix flat = to_matrix(name, array);
  std::vector<Matrix> out;
  for (Index c = 0; c < count; ++c) out.emplace_back(flat.middleRows(c * rows, rows));
  return out;
}

// The one-component surrogate is b + M a.
void add_gaussian(const std::string& head, const Surrogate& s, std::map<std::string, Array>& out) {
  out[head + ".gaussian.M"] = array_of(s.cov_vk.front());
  out[head + ".gaussian.b"] = array_of(Vector(s.mean_v.row(0)));
}

void add_mixture(const std::string& head, const Surrogate& s, std::map<std::string, Array>& out) {
  const std::string prefix = head + ".mixture" + std::to_string(s.size()) + ".";
  out[prefix + "weights"] = array_of(s.weights);
  out[prefix + "mean_k"] = array_of(s.mean_k);
  out[prefix + "mean_v"] = array_of(s.mean_v);
  out[prefix + "cov_k"] = stack(s.cov_k);
  out[prefix + "cov_vk"] = stack(s.cov_vk);
  out[prefix + "trace_v"] = array_of(s.trace_v);
}

Surrogate read_gaussian(const SafetensorsFile& file, const std::string& head) {
  const Matrix M = file.matrix(head + ".gaussian.M");
  const Matrix b = file.matrix(head + ".gaussian.b");
  check_dimension(head + ".gaussian", "b", b.size(), M.rows());
  return {.weights = Vector::Ones(1),
          .mean_k = Matrix::Zero(1, M.cols()),
          .mean_v = b.reshaped<Eigen::RowMajor>(1, b.size()),
          .cov_k = {Matrix::Zero(M.cols(), M.cols())},
          .cov_vk = {M},
          .trace_v = Vector::Zero(1)};
}

void check_shapes(const std::string& where, const Surrogate& s, Index k) {
  const Index dk = s.mean_k.cols();
  const Index dv = s.mean_v.cols();
  check_dimension(where, "weights", s.weights.size(), k);
  check_dimension(where, "mean_k (rows)", s.mean_k.rows(), k);
  check_dimension(where, "mean_v (rows)", s.mean_v.rows(), k);
  check_dimension(where, "trace_v", s.trace_v.size(), k);
  check_dimension(where, "cov_k", static_cast<long>(s.cov_k.size()), k);
  check_dimension(where, "cov_vk", static_cast<long>(s.cov_vk.size()), k);
  check_dimension(where, "cov_k (rows)", s.cov_k.front().rows(), dk);
  check_dimension(where, "cov_k (columns)", s.cov_k.front().cols(), dk);
  check_dimension(where, "cov_vk (rows)", s.cov_vk.front().rows(), dv);
  check_dimension(where, "cov_vk (columns)", s.cov_vk.front().cols(), dk);
}

Surrogate read_mixture(const SafetensorsFile& file, const std::string& head, Index k) {
  const std::string prefix = head + ".mixture" + std::to_string(k) + ".";
  Surrogate out{.weights = file.matrix(prefix + "weights").reshaped(),
                .mean_k = file.matrix(prefix + "mean_k"),
                .mean_v = file.matrix(prefix + "mean_v"),
                .cov_k = unstack(file, prefix + "cov_k"),
                .cov_vk = unstack(file, prefix + "cov_vk"),
                .trace_v = file.matrix(prefix + "trace_v").reshaped()};
  check_shapes(head + ".mixture" + std::to_string(k), out, k);
  return out;
}

}  // namespace

void write_surrogates(const std::filesystem::path& path,
                      const std::vector<NamedSurrogate>& surrogates) {
  std::map<std::string, Array> arrays;
  Metadata metadata;
  for (const NamedSurrogate& one : surrogates) {
    metadata[one.head + ".scale"] = to_text(one.scale);
    if (one.surrogate.size() == 1) {
      add_gaussian(one.head, one.surrogate, arrays);
    } else {
      add_mixture(one.head, one.surrogate, arrays);
    }
  }
  write_file(path, encode_safetensors(arrays, metadata));
}

NamedSurrogate read_surrogate(const std::filesystem::path& path, const std::string& head, Index k) {
  const SafetensorsFile file(path);
  const auto found = file.content().metadata.find(head + ".scale");
  if (found == file.content().metadata.end()) {
    throw FileError(path.string() + ": no surrogate of head " + head);
  }
  double scale = 0;
  const std::string& text = found->second;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), scale);
  if (parsed.ec != std::errc()) {
    throw FileError(path.string() + ": scale of head " + head + " is \"" + text +
                    "\", expected a number");
  }
  return {head, scale, k == 1 ? read_gaussian(file, head) : read_mixture(file, head, k)};
}

}  // namespace esscher
