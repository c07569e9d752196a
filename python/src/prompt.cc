#include "arrays.h"
#include "calls.h"
#include "esscher/base/error.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/prompt/errors.h"
#include "esscher/prompt/exact_mixture.h"
#include "esscher/universal/universal.h"
#include "estimates.h"
#include "python_measure.h"

namespace esscher::python {
namespace {

py::tuple universal_values(std::int64_t L, double tau) {
  const Universal u = without_gil([&] { return universal(L, tau); });
  return py::make_tuple(u.M1, u.M2c, u.H, u.M1_ratio, u.M2c_ratio, u.error);
}

py::array expected(const py::object& measure, const Attention& T, const py::object& z,
                   const py::object& length) {
  const AnyMeasure mu = measure_in("expected_output", measure);
  const VectorIn query = vector_in("expected_output", "z", z);
  const Length L = length_in("expected_output", length);
  const Vector value = long_call([&] {
    if (L.is_infinite()) return T(mu, query.view());
    const auto law = gaussian_mixture_law(mu);
    if (!law) {
      throw CapabilityError("expected_output: no closed form for " + mu.name() +
                            "; sample prompts and average T over them");
    }
    return MixtureErrors(*law, T, query.view()).expected_output(L);
  });
  return out(VectorView(value));
}

py::tuple error_of(const std::string& engine, const std::string& metric, const py::object& measure,
                   const Attention& T, const py::object& z, const py::object& length,
                   std::int64_t replicates, const Stream& stream) {
  const AnyMeasure mu = measure_in("mean_square_error", measure);
  const VectorIn query = vector_in("mean_square_error", "z", z);
  const Length L = length_in("mean_square_error", length);
  return out(long_call([&] {
    return mean_square_error(
        parse_enum<Metric>(metric), mu, T, query.view(), L,
        {.engine = parse_enum<Engine>(engine), .replicates = replicates, .stream = stream});
  }));
}

}  // namespace

void bind_prompt(py::module_& m) {
  m.def("universal", &universal_values);
  m.def("expected_output", &expected);
  m.def("mean_square_error", &error_of);
}

}  // namespace esscher::python
