#include "esscher/attention/attention.h"

#include "arrays.h"
#include "calls.h"
#include "esscher/attention/multi_head.h"
#include "esscher/base/parallel.h"
#include "esscher/prompt/direct.h"
#include "prompt.h"
#include "python_measure.h"

namespace esscher::python {
namespace {

enum class Kind { softmax, linear };

// A prompt, as an array or as an Empirical: the SIMD kernels of prompt/direct.h, on its own memory.
template <class T>
Matrix outputs(const Attention& head, const Rows<T>& tokens, const MatrixView& queries) {
  return direct_outputs(head, tokens, queries);
}

Matrix outputs(const Attention& head, const Empirical& prompt, const MatrixView& queries) {
  if (queries.rows() > 1) return direct_outputs(head, prompt, queries);
  return direct_output(head, prompt, queries.row(0).transpose()).transpose();
}

template <class Tokens>
Matrix outputs(const MultiHead& heads, const Tokens& tokens, const MatrixView& queries) {
  Matrix all(queries.rows(), heads.O().cols());
  Index first = 0;
  for (const Attention& head : heads.heads()) {
    all.middleCols(first, head.output_dim()) = outputs(head, tokens, queries);
    first += head.output_dim();
  }
  return all * heads.O().transpose();
}

template <class Operator, class Work>
py::object apply_to_prompt(const Operator& T, Index n, Index d, const py::object& z,
                           const Work& work) {
  const PointsIn points = points_in("attention", "z", z);
  check_dimension("attention", "z", points.view().cols(), T.dim());
  check_dimension("attention", "tokens.d", d, T.dim());
  const auto size = static_cast<double>(n * d) * static_cast<double>(points.view().rows());
  if (points.view().rows() == 0) return out(Matrix(0, T.output_dim()), points);
  return out(sized_call(size, [&] { return work(points.view()); }), points);
}

template <class Operator>
py::object apply_to_tokens(const Operator& T, const py::object& tokens, const py::object& z) {
  const TokensIn in = tokens_in("attention", tokens);
  return apply_to_prompt(T, in.rows(), in.owner.shape(1), z, [&](const MatrixView& queries) {
    return in.is_float ? outputs(T, in.view<float>(), queries)
                       : outputs(T, in.view<double>(), queries);
  });
}

template <class Operator>
py::object apply(const Operator& T, const py::object& measure, const py::object& z, Kind kind) {
  if (kind == Kind::softmax && is_tokens(measure)) return apply_to_tokens(T, measure, z);
  const AnyMeasure mu = limit_in("attention", measure);
  const Empirical* prompt = kind == Kind::softmax ? mu.as<Empirical>() : nullptr;
  if (prompt != nullptr) {
    return apply_to_prompt(T, prompt->size(), prompt->dim(), z,
                           [&](const MatrixView& queries) { return outputs(T, *prompt, queries); });
  }
  const PointsIn points = points_in("attention", "z", z);
  const auto view = points.view();
  Matrix rows(view.rows(), T.output_dim());
  run_interruptible([&] {
    parallel_for(view.rows(), [&](std::int64_t i) {
      const Vector query = view.row(i).transpose();
      rows.row(i) = kind == Kind::softmax ? T(mu, query) : T.linear(mu, query);
    });
  });
  return out(rows, points);
}

py::dict gradients(const AttentionGradients& g) {
  py::dict dict;
  dict["z"] = out(VectorView(g.z));
  dict["U"] = out(MatrixView(g.U));
  dict["V"] = out(MatrixView(g.V));
  dict["K"] = g.K.size() == 0 ? py::object(py::none()) : out(MatrixView(g.K));
  dict["Q"] = g.Q.size() == 0 ? py::object(py::none()) : out(MatrixView(g.Q));
  return dict;
}

py::dict gradients(const MultiHeadGradients& g) {
  py::dict dict;
  py::list heads;
  for (const AttentionGradients& head : g.heads) heads.append(gradients(head));
  dict["z"] = out(VectorView(g.z));
  dict["O"] = out(MatrixView(g.O));
  dict["heads"] = heads;
  return dict;
}

py::dict vjp_on_tokens(const Attention& T, const py::object& tokens, const py::object& z,
                       const py::object& cotangent) {
  const TokensIn in = tokens_in("vjp", tokens);
  const VectorIn query = vector_in("vjp", "z", z), g = vector_in("vjp", "g", cotangent);
  return gradients(sized_call(static_cast<double>(in.owner.size()), [&] {
    return in.is_float ? direct_vjp(T, in.view<float>(), query.view(), g.view()).gradients
                       : direct_vjp(T, in.view<double>(), query.view(), g.view()).gradients;
  }));
}

template <class Operator>
py::dict vjp(const Operator& T, const py::object& measure, const py::object& z,
             const py::object& cotangent, bool linear) {
  if constexpr (std::is_same_v<Operator, Attention>) {
    if (!linear && is_tokens(measure)) return vjp_on_tokens(T, measure, z, cotangent);
  }
  const AnyMeasure mu = limit_in("vjp", measure);
  const VectorIn query = vector_in("vjp", "z", z);
  const VectorIn g = vector_in("vjp", "g", cotangent);
  if constexpr (std::is_same_v<Operator, Attention>) {
    if (const auto* prompt = mu.template as<Empirical>(); prompt != nullptr && !linear) {
      return gradients(sized_call(static_cast<double>(prompt->size() * prompt->dim()), [&] {
        return direct_vjp(T, *prompt, query.view(), g.view()).gradients;
      }));
    }
  }
  return gradients(long_call([&] {
    return linear ? T.linear_vjp(mu, query.view(), g.view()) : T.vjp(mu, query.view(), g.view());
  }));
}

py::array jacobian(const Attention& T, const py::object& measure, const py::object& z, char in,
                   bool linear) {
  const AnyMeasure mu = limit_in("jacobian", measure);
  const VectorIn query = vector_in("jacobian", "z", z);
  const VectorView x = query.view();
  const Matrix J = long_call([&] {
    if (in == 'z') return linear ? T.linear_jacobian_z(mu, x) : T.jacobian_z(mu, x);
    if (in == 'U') return linear ? T.linear_jacobian_U(mu, x) : T.jacobian_U(mu, x);
    return linear ? T.linear_jacobian_V(mu, x) : T.jacobian_V(mu, x);
  });
  return out(MatrixView(J));
}

// The members both operators share.
template <class Operator>
void bind_operator(py::class_<Operator>& cls) {
  cls.def_property_readonly("dim", &Operator::dim)
      .def_property_readonly("output_dim", &Operator::output_dim)
      .def("_softmax", [](const Operator& T, const py::object& mu,
                          const py::object& z) { return apply(T, mu, z, Kind::softmax); })
      .def("_linear", [](const Operator& T, const py::object& mu,
                         const py::object& z) { return apply(T, mu, z, Kind::linear); })
      .def("_vjp", &vjp<Operator>);
}

}  // namespace

void bind_attention(py::module_& m) {
  py::class_<Attention> attention(m, "Attention");
  bind_operator(attention);
  attention.def(py::init<const Attention&>())
      .def_property_readonly("U", [](const Attention& T) { return out(MatrixView(T.U())); })
      .def_property_readonly("V", [](const Attention& T) { return out(MatrixView(T.V())); })
      .def_property_readonly("K", [](const Attention& T) { return out(MatrixView(T.K())); })
      .def_property_readonly("Q", [](const Attention& T) { return out(MatrixView(T.Q())); })
      .def_property_readonly("scale", &Attention::scale)
      .def_property_readonly("has_kq", &Attention::has_kq)
      .def("_jacobian", &jacobian);
  m.def("attention_uv", [](const py::object& U, const py::object& V) {
    return Attention::from_uv(matrix_in("attention", "U", U).view(),
                              matrix_in("attention", "V", V).view());
  });
  m.def("attention_kqv",
        [](const py::object& K, const py::object& Q, const py::object& V, double scale) {
          return Attention::from_kqv(matrix_in("attention", "K", K).view(),
                                     matrix_in("attention", "Q", Q).view(),
                                     matrix_in("attention", "V", V).view(), scale);
        });

  py::class_<MultiHead> multi_head(m, "MultiHead");
  bind_operator(multi_head);
  multi_head.def(py::init([](const py::iterable& heads, const py::object& O) {
    std::vector<Attention> list;
    for (const py::handle head : heads) list.push_back(py::cast<const Attention&>(head));
    return MultiHead(std::move(list), matrix_in("multi_head", "O", O).view());
  }));
  multi_head.def_property_readonly("O", [](const MultiHead& T) { return out(MatrixView(T.O())); });
}

}  // namespace esscher::python
