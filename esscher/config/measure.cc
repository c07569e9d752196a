#include "esscher/config/measure.h"

#include "esscher/base/error.h"
#include "esscher/config/link.h"
#include "esscher/config/matrix_spec.h"
#include "esscher/io/matrix.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/categorical.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/dirac.h"
#include "esscher/measure/elliptical.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/product.h"
#include "esscher/measure/single_index.h"
#include "esscher/measure/sphere.h"
#include "esscher/measure/stationary.h"
#include "esscher/measure/student.h"
#include "esscher/measure/sum.h"

namespace esscher {
namespace {

constexpr Range kDims = Range::between(1, 1 << 20);
constexpr Range kMatrixDims = Range::between(1, 1 << 14);  // where a [dim,dim] matrix is held

// Whatever a constructor refuses is an error of this table.
template <class Make>
auto in_table(const Table& table, const Make& make) {
  try {
    return make();
  } catch (const ArgumentError& error) {
    table.fail_table(error.what());
  }
}

Vector sized_vector(const Table& table, std::string_view key, Index size) {
  Vector out = table.vector(key);
  if (out.size() != size) table.fail(key, std::to_string(size) + " numbers");
  return out;
}

// Not negative; size kAnySize accepts any number of them.
Vector weight_vector(const Table& table, std::string_view key, Index size) {
  const std::vector<double> values = table.numbers(key, Range::at_least(0));
  const auto n = static_cast<Index>(values.size());
  if (size != kAnySize && n != size) table.fail(key, std::to_string(size) + " numbers");
  Vector out = Eigen::Map<const Vector>(values.data(), n);
  if (!(out.sum() > 0)) table.fail(key, "numbers with a positive sum");
  return out;
}

AnyMeasure read_gaussian(const Table& table) {
  Index dim = table.has("dim") ? table.integer("dim", kMatrixDims) : kAnySize;
  std::optional<Vector> mean;
  if (table.has("mean")) {
    mean = dim == kAnySize ? table.vector("mean") : sized_vector(table, "mean", dim);
    dim = mean->size();
    if (!kMatrixDims.contains(static_cast<double>(dim))) table.fail("mean", "1 to 16384 numbers");
  }
  if (!table.has("cov") && dim == kAnySize) table.fail_table("expected dim, mean or cov");
  const Matrix cov =
      table.has("cov") ? read_cov_spec(table, "cov", dim) : Matrix(Matrix::Identity(dim, dim));
  return Gaussian(mean ? *mean : Vector(Vector::Zero(cov.rows())), cov);
}

AnyMeasure read_empirical(const Table& table) {
  if (table.has("file") == table.has("tokens")) {
    table.fail_table("expected either file or tokens");
  }
  Matrix tokens = table.has("file") ? read_matrix(table.file("file")) : table.matrix("tokens");
  if (table.has("dim") && table.integer("dim") != tokens.cols()) {
    table.fail("dim", std::to_string(tokens.cols()) + ", the length of the tokens");
  }
  if (!table.has("weights")) return Empirical(std::move(tokens));
  const Vector weights = weight_vector(table, "weights", tokens.rows());
  return Empirical(std::move(tokens), weights);
}

AnyMeasure read_categorical(const Table& table) {
  if (table.has("probs")) {
    const Index dim = table.has("dim") ? table.integer("dim", kDims) : kAnySize;
    return Categorical(weight_vector(table, "probs", dim));
  }
  const Index dim = table.integer("dim", kDims);
  return Categorical(Vector::Constant(dim, 1.0 / static_cast<double>(dim)));
}

std::vector<AnyMeasure> read_parts(const Table& table) {
  std::vector<AnyMeasure> out;
  for (const Table& part : table.tables("parts")) {
    out.push_back(read_measure(part));
    if (is_dependent(out.back())) {
      part.fail("type", "a law of independent tokens; a stationary sequence is a whole measure");
    }
  }
  return out;
}

AnyMeasure read_mixture(const Table& table) {
  std::vector<AnyMeasure> parts = read_parts(table);
  const auto n = static_cast<Index>(parts.size());
  const Vector weights = table.has("weights")
                             ? weight_vector(table, "weights", n)
                             : Vector(Vector::Constant(n, 1.0 / static_cast<double>(n)));
  return Mixture(weights, std::move(parts));
}

AnyMeasure read_affine(const Table& table) {
  const std::vector<AnyMeasure> parts = read_parts(table);
  if (parts.size() != 1) table.fail("parts", "exactly one part");
  const Index inner = parts.front().dim();
  const Index dim = table.has("shift") ? table.vector("shift").size() : kAnySize;
  const Matrix B = table.has("matrix") ? read_matrix_spec(table, "matrix", dim, inner)
                                       : Matrix(Matrix::Identity(inner, inner));
  const Vector shift = table.has("shift") ? table.vector("shift") : Vector(Vector::Zero(B.rows()));
  return Affine(shift, B, parts.front());
}

// The covariance of a law without other matrices, which fixes its dimension together with `mean`.
Matrix read_cov(const Table& table, Index dim) {
  if (table.has("dim")) {
    const Index asked = table.integer("dim", kMatrixDims);
    if (dim != kAnySize && asked != dim) table.fail("dim", std::to_string(dim));
    dim = asked;
  }
  if (table.has("cov")) return read_cov_spec(table, "cov", dim);
  if (dim == kAnySize) table.fail_table("expected dim, mean or cov");
  return Matrix::Identity(dim, dim);
}

Vector mean_or_zero(const Table& table, Index dim) {
  return table.has("mean") ? sized_vector(table, "mean", dim) : Vector(Vector::Zero(dim));
}

Index size_of_mean(const Table& table) {
  return table.has("mean") ? table.vector("mean").size() : kAnySize;
}

AnyMeasure read_elliptical(const Table& table) {
  const Matrix cov = read_cov(table, size_of_mean(table));
  const Vector mean = mean_or_zero(table, cov.rows());
  if (table.choice_or("radial", {"scales", "gamma"}, "scales") == "gamma") {
    const double shape = table.number("shape", Range::positive());
    return Elliptical(mean, cov, gamma_scales(shape, table.number("bound", Range::positive())));
  }
  const std::vector<double> values = table.numbers("scales", Range::at_least(0));
  const auto n = static_cast<Index>(values.size());
  const Vector weights =
      table.has("weights") ? weight_vector(table, "weights", n) : Vector(Vector::Ones(n));
  return Elliptical(mean, cov, {Eigen::Map<const Vector>(values.data(), n), weights});
}

AnyMeasure read_student(const Table& table) {
  const double nu = table.number("nu", Range::positive());
  const Matrix cov = read_cov(table, size_of_mean(table));
  return Student(nu, mean_or_zero(table, cov.rows()), cov);
}

AnyMeasure read_single_index(const Table& table) {
  const Vector index = table.vector("index");
  const Link link = read_link(table);
  const double noise = table.number_or("noise_variance", 0.0, Range::at_least(0));
  const Matrix cov = table.has("cov") ? read_cov_spec(table, "cov", index.size())
                                      : Matrix(Matrix::Identity(index.size(), index.size()));
  return SingleIndex(cov, index, link, noise);
}

// Coefficients of an autoregression: numbers, a matrix, or several matrices side by side [d, p d].
std::vector<Matrix> read_coefficients(const Table& table, Index d) {
  const Matrix I = Matrix::Identity(d, d);
  std::vector<Matrix> out;
  const ConfigValue::Array* array = table.value("ar").array();
  if (array != nullptr && !array->empty() && array->front().array() == nullptr) {
    for (const double x : table.numbers("ar")) out.emplace_back(x * I);
    return out;
  }
  const bool is_rows = array != nullptr;
  const Matrix all = is_rows ? table.matrix("ar") : read_matrix_spec(table, "ar", d, d);
  if (all.rows() != d || all.cols() < d || all.cols() % d != 0) {
    table.fail_because("ar", "shape is [" + std::to_string(all.rows()) + "," +
                                 std::to_string(all.cols()) + "], expected [d,d], or [d,p d] for " +
                                 "p matrices side by side, d = " + std::to_string(d));
  }
  for (Index k = 0; k < all.cols(); k += d) out.emplace_back(all.middleCols(k, d));
  return out;
}

AnyMeasure read_stationary(const Table& table) {
  const int ways =
      int{table.has("autocorrelation")} + int{table.has("ar")} + int{table.has("file")};
  if (ways != 1) table.fail_table("expected one of autocorrelation, ar or file");
  if (table.has("file")) return Stationary::fit(read_matrix(table.file("file")));
  const AnyMeasure of = read_measure(table.table("of"));
  if (table.has("ar")) return Stationary::autoregressive(of, read_coefficients(table, of.dim()));
  return Stationary::autocorrelated(of, table.vector("autocorrelation"));
}

AnyMeasure make_measure(const Table& table) {
  const std::string type =
      table.choice("type", {"gaussian", "empirical", "rademacher", "uniform", "sphere", "ball",
                            "categorical", "laplace", "mixture", "product", "affine", "sum",
                            "dirac", "elliptical", "student", "single_index", "stationary"});
  if (type == "stationary") return read_stationary(table);
  if (type == "dirac") return Dirac(table.vector("point"));
  if (type == "elliptical") return read_elliptical(table);
  if (type == "student") return read_student(table);
  if (type == "single_index") return read_single_index(table);
  if (type == "gaussian") return read_gaussian(table);
  if (type == "empirical") return read_empirical(table);
  if (type == "categorical") return read_categorical(table);
  if (type == "mixture") return read_mixture(table);
  if (type == "affine") return read_affine(table);
  if (type == "product") return Product(read_parts(table));
  if (type == "sum") return Sum(read_parts(table));
  const Index dim = table.integer("dim", kDims);
  if (type == "rademacher") return Rademacher(dim);
  if (type == "uniform") return Uniform(dim);
  if (type == "laplace") return Laplace(dim, table.number_or("b", 1.0, Range::positive()));
  const double radius = table.number_or("radius", 1.0, Range::positive());
  if (type == "sphere") return Sphere(dim, radius);
  return Ball(dim, radius);
}

// [[..], ..], or [..] for a single point.
Matrix read_points(const Table& table, std::string_view key) {
  const ConfigValue::Array* array = table.value(key).array();
  if (array == nullptr) {
    table.fail(key,
               key == "z" ? "a vector [1, 0.5]" : "rows [[1, 0.5], ..] or one vector [1, 0.5]");
  }
  const bool is_lone = !array->empty() && array->front().array() == nullptr;
  return is_lone ? Matrix(table.vector(key).transpose()) : table.matrix(key);
}

Matrix spec_or_identity(const Table& table, std::string_view key, Index rows, Index dim) {
  if (table.has(key)) return read_matrix_spec(table, key, rows, dim);
  return Matrix::Identity(dim, dim);
}

}  // namespace

AnyMeasure read_measure(const Table& table) {
  return in_table(table, [&] { return make_measure(table); });
}

Attention read_attention(const Table& root, Index dim) {
  const Table table = root.table_or_empty("attention");
  (void)attention_is_linear(root);
  const double scale = table.number_or("score_scale", 1.0);
  const Matrix V = spec_or_identity(table, "V", kAnySize, dim);
  if (!table.has("K") && !table.has("Q")) {
    const Matrix U = spec_or_identity(table, "U", dim, dim);
    return Attention::from_uv(scale * U, V);
  }
  if (table.has("U")) table.fail_because("U", "given beside K or Q; give U alone or K and Q");
  const Matrix K = read_matrix_spec(table, "K", kAnySize, dim);
  const Matrix Q = read_matrix_spec(table, "Q", K.rows(), dim);
  return Attention::from_kqv(K, Q, V, scale);
}

bool attention_is_linear(const Table& root) {
  return root.table_or_empty("attention").choice_or("kind", {"softmax", "linear"}, "softmax") ==
         "linear";
}

Query read_query(const Table& root, Index dim) {
  const Table table = root.table("query");
  std::vector<std::string> ways;
  for (const char* way : {"points", "z", "type"}) {
    if (table.has(way)) ways.emplace_back(way);
  }
  if (table.has("file") && !table.has("type")) ways.emplace_back("file");
  if (ways.size() != 1) {
    std::string given = ways.empty() ? "none was given" : "given were " + ways[0];
    for (std::size_t i = 1; i < ways.size(); ++i) given += " and " + ways[i];
    table.fail_table("expected one of points, z, file, or a measure with its type; " + given);
  }
  Query out;
  std::string_view key = "type";
  Index got = 0;
  if (table.has("type")) {
    out.law = read_measure(table);
    if (is_dependent(*out.law)) table.fail("type", "a law of independent queries");
    got = out.law->dim();
  } else {
    key = table.has("points") ? "points" : table.has("z") ? "z" : "file";
    out.points = key == "file" ? read_matrix(table.file(key)) : read_points(table, key);
    got = out.points.cols();
    if (out.points.rows() == 0) table.fail(key, "at least one point");
  }
  if (got != dim) {
    table.fail_because(key, "dimension is " + std::to_string(got) + ", expected " +
                                std::to_string(dim) + " as the measure has");
  }
  return out;
}

}  // namespace esscher
