#include <optional>

#include "arrays.h"
#include "calls.h"
#include "esscher/heads/diagnose.h"
#include "esscher/heads/load.h"

namespace esscher::python {
namespace {

py::object diagnose_all(const std::vector<Head>& heads, std::uint64_t seed, double tolerance) {
  HeadOptions options;
  options.seed = seed;
  options.tolerance = tolerance;
  return out(long_call([&] {
    Json rows = Json::array();
    for (const Head& head : heads) rows.push_back(to_json(diagnose(head, options)));
    return rows;
  }));
}

}  // namespace

void bind_heads(py::module_& m) {
  m.def("diagnose", [](const py::object& Q, const py::object& K, const py::object& V, double scale,
                       bool causal, std::uint64_t seed, double tolerance) {
    return diagnose_all({make_head("head", matrix_in("diagnose", "Q", Q).view(),
                                   matrix_in("diagnose", "K", K).view(),
                                   matrix_in("diagnose", "V", V).view(), scale, causal)},
                        seed, tolerance);
  });
  m.def("diagnose_file", [](const std::string& path, std::uint64_t seed, double tolerance) {
    return diagnose_all(load_heads(path), seed, tolerance);
  });
}

}  // namespace esscher::python
