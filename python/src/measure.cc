#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "arrays.h"
#include "calls.h"
#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/esscher.h"
#include "links.h"
#include "python_measure.h"

namespace esscher::python {
namespace {

// f(row) [width] for each row of the points, as rows [n,width]. The rows are independent.
Matrix map_rows(const PointsIn& points, Index width,
                const std::function<Vector(const Vector&)>& f) {
  const auto view = points.view();
  Matrix result(view.rows(), width);
  parallel_for(view.rows(),
               [&](std::int64_t i) { result.row(i) = f(view.row(i).transpose()).transpose(); });
  return result;
}

py::object log_mgf(const AnyMeasure& mu, const py::object& a) {
  const PointsIn points = points_in("log_mgf", "a", a);
  const Matrix rows = long_call([&] {
    return map_rows(points, 1,
                    [&](const Vector& x) { return Vector(Vector::Constant(1, mu.log_mgf(x))); });
  });
  if (points.lone) return py::float_(rows(0, 0));
  return out(VectorView(rows.col(0)));
}

py::object tilted_mean(const AnyMeasure& mu, const py::object& a) {
  const PointsIn points = points_in("tilted_mean", "a", a);
  const Matrix rows = long_call([&] {
    return map_rows(points, mu.dim(), [&](const Vector& x) { return mu.tilted_mean(x); });
  });
  return out(rows, points);
}

std::vector<AnyMeasure> measures_in(const char* where, const py::iterable& values) {
  std::vector<AnyMeasure> parts;
  for (const py::handle value : values) parts.push_back(measure_in(where, value));
  return parts;
}

py::object parts_of(const std::vector<AnyMeasure>& parts) {
  py::list list;
  for (const AnyMeasure& part : parts) list.append(part);
  return list;
}

template <class T>
const T& concrete(const AnyMeasure& mu, const char* type) {
  const T* object = mu.as<T>();
  if (object == nullptr) throw CapabilityError(mu.name() + " is not of type " + type);
  return *object;
}

const Empirical& empirical(const AnyMeasure& mu) { return concrete<Empirical>(mu, "empirical"); }

// Tokens as a read-only array that shares the measure's memory.
py::array tokens_of(const py::object& self) {
  const Matrix& tokens = empirical(py::cast<const AnyMeasure&>(self)).tokens();
  py::array_t<double> view({tokens.rows(), tokens.cols()}, tokens.data(), self);
  view.attr("flags").attr("writeable") = false;
  return view;
}

void bind_factories(py::module_& m) {
  m.def("measure", [](const py::object& value) { return measure_in("measure", value); });
  m.def("empirical", [](const py::object& tokens, const py::object& weights) -> AnyMeasure {
    const MatrixIn z = matrix_in("empirical", "tokens", tokens);
    if (weights.is_none()) return Empirical(Matrix(z.view()));
    return Empirical(Matrix(z.view()), vector_in("empirical", "weights", weights).view());
  });
  m.def("gaussian", [](const py::object& cov, const py::object& mean) -> AnyMeasure {
    const MatrixIn G = matrix_in("gaussian", "cov", cov);
    if (mean.is_none()) return Gaussian(G.view());
    return Gaussian(vector_in("gaussian", "mean", mean).view(), G.view());
  });
  m.def("rademacher", [](Index d) -> AnyMeasure { return Rademacher(d); });
  m.def("uniform", [](Index d) -> AnyMeasure { return Uniform(d); });
  m.def("laplace", [](Index d, double b) -> AnyMeasure { return Laplace(d, b); });
  m.def("sphere", [](Index d, double R) -> AnyMeasure { return Sphere(d, R); });
  m.def("ball", [](Index d, double R) -> AnyMeasure { return Ball(d, R); });
  m.def("categorical", [](const py::object& probs) -> AnyMeasure {
    return Categorical(vector_in("categorical", "probs", probs).view());
  });
  m.def("dirac", [](const py::object& point) -> AnyMeasure {
    return Dirac(vector_in("dirac", "point", point).view());
  });
  m.def("elliptical",
        [](const py::object& cov, const py::object& scales, const py::object& weights,
           const py::object& mean) -> AnyMeasure {
          const MatrixIn G = matrix_in("elliptical", "cov", cov);
          const VectorIn w = vector_in("elliptical", "scales", scales);
          ScaleLaw law{w.view(), Vector::Ones(w.view().size())};
          if (!weights.is_none()) law.weights = vector_in("elliptical", "weights", weights).view();
          if (mean.is_none()) return Elliptical(G.view(), law);
          return Elliptical(vector_in("elliptical", "mean", mean).view(), G.view(), law);
        });
  m.def("gamma_scales", [](double shape, double bound) {
    const ScaleLaw law = gamma_scales(shape, bound);
    return py::make_tuple(out(VectorView(law.scales)), out(VectorView(law.weights)));
  });
  m.def("student", [](double nu, const py::object& cov, const py::object& mean) -> AnyMeasure {
    const MatrixIn G = matrix_in("student", "cov", cov);
    if (mean.is_none()) return Student(nu, G.view());
    return Student(nu, vector_in("student", "mean", mean).view(), G.view());
  });
  m.def("single_index",
        [](const py::object& cov, const py::object& index, const py::object& link, double noise,
           const py::object& coefficients, const py::object& kinks) -> AnyMeasure {
          const MatrixIn G = matrix_in("single_index", "cov", cov);
          const VectorIn w = vector_in("single_index", "index", index);
          return SingleIndex(G.view(), w.view(), link_in(link, coefficients, kinks), noise);
        });
  m.def("stationary",
        [](const py::object& of, const py::object& autocorrelation,
           const py::object& ar) -> AnyMeasure {
          const AnyMeasure law = measure_in("stationary", of);
          if (!autocorrelation.is_none()) {
            return Stationary::autocorrelated(
                law, vector_in("stationary", "autocorrelation", autocorrelation).view());
          }
          std::vector<Matrix> A;
          for (const py::handle one : py::cast<py::iterable>(ar)) {
            A.emplace_back(
                matrix_in("stationary", "ar", py::reinterpret_borrow<py::object>(one)).view());
          }
          return Stationary::autoregressive(law, std::move(A));
        });
  m.def("stationary_fit", [](const py::object& tokens) -> AnyMeasure {
    return Stationary::fit(matrix_in("stationary", "tokens", tokens).view());
  });
  m.def("autocovariances", [](const AnyMeasure& mu) {
    py::list list;
    for (const Matrix& G : concrete<Stationary>(mu, "stationary").autocovariances()) {
      list.append(out(MatrixView(G)));
    }
    return list;
  });
  m.def("affine",
        [](const py::object& c, const py::object& B, const py::object& inner) -> AnyMeasure {
          return Affine(vector_in("affine", "c", c).view(), matrix_in("affine", "B", B).view(),
                        measure_in("affine", inner));
        });
  m.def("product", [](const py::iterable& blocks) -> AnyMeasure {
    return Product(measures_in("product", blocks));
  });
  m.def("sum",
        [](const py::iterable& parts) -> AnyMeasure { return Sum(measures_in("sum", parts)); });
  m.def("mixture", [](const py::object& weights, const py::iterable& components) -> AnyMeasure {
    return Mixture(vector_in("mixture", "weights", weights).view(),
                   measures_in("mixture", components));
  });
}

// What only some measures have; CapabilityError for the others.
void bind_parts(py::module_& m) {
  m.def("tokens", &tokens_of);
  m.def("weights", [](const AnyMeasure& mu) {
    if (const auto* mixture = mu.as<Mixture>()) return out(VectorView(mixture->weights()));
    if (const auto* categorical = mu.as<Categorical>())
      return out(VectorView(categorical->probs()));
    return out(VectorView(empirical(mu).weights()));
  });
  m.def("components", [](const AnyMeasure& mu) {
    if (const auto* product = mu.as<Product>()) return parts_of(product->blocks());
    if (const auto* sum = mu.as<Sum>()) return parts_of(sum->parts());
    return parts_of(concrete<Mixture>(mu, "mixture").components());
  });
  m.def("tilted_weights", [](const AnyMeasure& mu, const py::object& a) {
    const VectorIn tilt = vector_in("tilted_weights", "a", a);
    return out(VectorView(without_gil([&] { return empirical(mu).tilted_weights(tilt.view()); })));
  });
  m.def("gaussian_law", [](const AnyMeasure& mu) -> py::object {
    const auto law = gaussian_law(mu);
    if (!law) return py::none();
    return py::make_tuple(out(VectorView(law->mean)), out(MatrixView(law->cov)));
  });
}

}  // namespace

void bind_measure(py::module_& m) {
  py::class_<AnyMeasure>(m, "Measure")
      .def(py::init<const AnyMeasure&>())
      .def_property_readonly("dim", &AnyMeasure::dim)
      .def_property_readonly("cardinality",
                             [](const AnyMeasure& mu) { return out(mu.cardinality()); })
      .def_property_readonly("name", &AnyMeasure::name)
      .def("_mean", [](const AnyMeasure& mu) { return out(VectorView(mu.mean())); })
      .def("second_moment",
           [](const AnyMeasure& mu) { return out(MatrixView(mu.second_moment())); })
      .def("log_mgf", &log_mgf, py::arg("a"))
      .def("tilted_mean", &tilted_mean, py::arg("a"))
      .def(
          "tilted_cov",
          [](const AnyMeasure& mu, const py::object& a) {
            const VectorIn tilt = vector_in("tilted_cov", "a", a);
            return out(MatrixView(without_gil([&] { return mu.tilted_cov(tilt.view()); })));
          },
          py::arg("a"))
      .def(
          "tilted_cov_times",
          [](const AnyMeasure& mu, const py::object& a, const py::object& v) {
            const VectorIn tilt = vector_in("tilted_cov_times", "a", a);
            const VectorIn x = vector_in("tilted_cov_times", "v", v);
            return out(VectorView(
                without_gil([&] { return mu.tilted_cov_times(tilt.view(), x.view()); })));
          },
          py::arg("a"), py::arg("v"))
      .def("sub_gaussian",
           [](const AnyMeasure& mu) { return long_call([&] { return mu.sub_gaussian(); }); })
      .def(
          "_sample",
          [](const AnyMeasure& mu, const Stream& stream, Index n) -> AnyMeasure {
            return long_call([&] { return mu.sample(stream, n); });
          },
          py::arg("stream"), py::arg("n"));
  bind_factories(m);
  bind_parts(m);
}

}  // namespace esscher::python
