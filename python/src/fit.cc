#include <pybind11/stl.h>

#include "arrays.h"
#include "calls.h"
#include "esscher/heads/mixture_fit.h"
#include "parts.h"

namespace esscher::python {
namespace {

// (weights [k], means: k of [d], covs: k of [d,d])
py::tuple fit(const py::object& tokens, Index k, const Stream& stream, int restarts, int iterations,
              double tolerance, double floor) {
  const MatrixIn points = matrix_in("fit", "tokens", tokens);
  const MixtureFitOptions options{.restarts = restarts,
                                  .max_iterations = iterations,
                                  .tolerance = tolerance,
                                  .relative_floor = floor};
  const MixtureFit found =
      long_call([&] { return fit_mixture(points.view(), k, stream, options); });
  py::list means, covs;
  for (const Vector& m : found.means) means.append(out(VectorView(m)));
  for (const Matrix& C : found.covs) covs.append(out(MatrixView(C)));
  return py::make_tuple(out(VectorView(found.weights)), means, covs);
}

}  // namespace

void bind_fit(py::module_& m) { m.def("fit_mixture", &fit); }

}  // namespace esscher::python
