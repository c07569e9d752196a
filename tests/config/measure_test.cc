#include "esscher/config/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "esscher/base/error.h"
#include "esscher/io/npy.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/product.h"
#include "tests/io/files.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using ::testing::HasSubstr;
using testing::message_of;

AnyMeasure measure(const std::string& text) {
  const Config config = Config::parse("[measure]\n" + text, "t.toml");
  AnyMeasure mu = read_measure(config.root().table("measure"));
  config.check_all_used();
  return mu;
}

std::string error_of(const std::string& text) {
  return message_of<ConfigError>([&] { return measure(text); });
}

TEST(ReadMeasure, EveryType) {
  for (const auto& [text, name, dim] : std::vector<std::tuple<const char*, const char*, Index>>{
           {"type = 'gaussian'\ndim = 3", "gaussian", 3},
           {"type = 'gaussian'\nmean = [1, 2]", "gaussian", 2},
           {"type = 'gaussian'\ncov = [[1, 0], [0, 2]]", "gaussian", 2},
           {"type = 'empirical'\ntokens = [[1, 2], [3, 4], [5, 6]]", "empirical", 2},
           {"type = 'rademacher'\ndim = 3", "rademacher", 3},
           {"type = 'uniform'\ndim = 3", "uniform", 3},
           {"type = 'sphere'\ndim = 3\nradius = 2", "sphere", 3},
           {"type = 'ball'\ndim = 3", "ball", 3},
           {"type = 'laplace'\ndim = 3\nb = 0.5", "laplace", 3},
           {"type = 'categorical'\nprobs = [0.5, 0.5]", "categorical", 2},
           {"type = 'dirac'\npoint = [1, 2, 3]", "dirac", 3},
           {"type = 'elliptical'\ndim = 2\nscales = [1, 2]", "elliptical", 2},
           {"type = 'elliptical'\ncov = [[1]]\nradial = 'gamma'\nshape = 2\nbound = 3",
            "elliptical", 1},
           {"type = 'student'\nnu = 5\nmean = [1, 2]", "student", 2},
           {"type = 'stationary'\nautocorrelation = [0.4]\nof = {type = 'gaussian', dim = 2}",
            "stationary", 2},
           {"type = 'stationary'\nar = 0.8\nof = {type = 'gaussian', dim = 2}", "stationary", 2},
           {"type = 'stationary'\nar = [0.5, 0.2]\nof = {type = 'gaussian', dim = 2}", "stationary",
            2},
           {"type = 'stationary'\nar = [[0.5, 0.1, 0, 0.2], [0, 0.3, 0.1, 0]]\n"
            "of = {type = 'gaussian', dim = 2}",
            "stationary", 2},
           {"type = 'single_index'\nindex = [1, 2]\nlink = 'sign'", "single_index", 3},
           {"type = 'categorical'\ndim = 4", "categorical", 4},
           {"type = 'product'\nparts = [{type = 'uniform', dim = 1}, {type = 'ball', dim = 2}]",
            "product", 3},
           {"type = 'sum'\nparts = [{type = 'uniform', dim = 2}, {type = 'gaussian', dim = 2}]",
            "sum", 2},
           {"type = 'mixture'\nparts = [{type = 'uniform', dim = 2}]", "mixture", 2},
           {"type = 'affine'\nmatrix = [[1], [2]]\nparts = [{type = 'uniform', dim = 1}]", "affine",
            2},
       }) {
    const AnyMeasure mu = measure(text);
    EXPECT_EQ(mu.name(), name);
    EXPECT_EQ(mu.dim(), dim) << text;
    EXPECT_EQ(mu.log_mgf(Vector::Zero(dim)), 0) << text;
  }
}

// log E e^{a x} at a = 0.7 in one dimension: the parameters arrive where they belong.
TEST(ReadMeasure, ParametersAreUsed) {
  const double a = 0.7;
  for (const auto& [text, mgf] : std::vector<std::tuple<const char*, double>>{
           {"type = 'gaussian'\nmean = [2]\ncov = 3.0", std::exp(2 * a + 1.5 * a * a)},
           {"type = 'empirical'\ntokens = [[1], [4]]\nweights = [3, 1]",
            0.75 * std::exp(a) + 0.25 * std::exp(4 * a)},
           {"type = 'rademacher'\ndim = 1", std::cosh(a)},
           {"type = 'dirac'\npoint = [3]", std::exp(3 * a)},
           {"type = 'elliptical'\nmean = [2]\ncov = 3.0\nscales = [0, 2]\nweights = [1, 3]",
            std::exp(2 * a) * (0.25 + 0.75 * std::exp(3 * a * a))},
           {"type = 'sphere'\ndim = 1\nradius = 2", std::cosh(2 * a)},
           {"type = 'ball'\ndim = 1\nradius = 2", std::sinh(2 * a) / (2 * a)},
           {"type = 'laplace'\ndim = 1\nb = 0.5", 1 / (1 - a * a / 4)},
           {"type = 'affine'\nshift = [1]\nmatrix = [[3]]\nparts = [{type = 'rademacher', dim = "
            "1}]",
            std::exp(a) * std::cosh(3 * a)},
           {"type = 'mixture'\nweights = [1, 3]\nparts = [{type = 'rademacher', dim = 1}, {type = "
            "'gaussian', dim = 1}]",
            0.25 * std::cosh(a) + 0.75 * std::exp(a * a / 2)},
           {"type = 'sum'\nparts = [{type = 'rademacher', dim = 1}, {type = 'gaussian', dim = 1}]",
            std::cosh(a) * std::exp(a * a / 2)},
       }) {
    EXPECT_TRUE(close(measure(text).log_mgf(Vector::Constant(1, a)), std::log(mgf), 1e-13)) << text;
  }
}

TEST(ReadMeasure, SingleIndexKeysAreUsed) {
  const AnyMeasure mu = measure(
      "type = 'single_index'\nindex = [2]\ncov = 0.25\nlink = 'polynomial'\n"
      "coefficients = [1, 3]\nnoise_variance = 0.5");
  // x ~ N(0, 1/4), y = 1 + 6 x + noise.
  EXPECT_TRUE(close(mu.mean(), Vector{{0.0, 1.0}}, 1e-15));
  EXPECT_TRUE(close(mu.second_moment(), Matrix{{0.25, 1.5}, {1.5, 10.5}}, 1e-14));
}

TEST(ReadMeasure, NestedParts) {
  const AnyMeasure mu = measure(R"(
type = "product"
[[measure.parts]]
type = "mixture"
weights = [1, 1]
[[measure.parts.parts]]
type = "affine"
shift = [1.0]
[[measure.parts.parts.parts]]
type = "rademacher"
dim = 1
[[measure.parts.parts]]
type = "gaussian"
cov = { kind = "diagonal", values = [2.0] }
[[measure.parts]]
type = "uniform"
dim = 2
)");
  EXPECT_EQ(mu.dim(), 3);
  const Vector a = (Vector(3) << 0.3, 0, 0).finished();
  const double mgf = (0.5 + 0.5 * std::exp(0.6)) / 2 + std::exp(0.09) / 2;
  EXPECT_TRUE(close(mu.log_mgf(a), std::log(mgf), 1e-13));
}

TEST(ReadMeasure, TokensFromAFile) {
  const testing::TemporaryFolder folder;
  write_npy(folder.file("x.npy"), (Matrix(2, 1) << 1, 3).finished());
  const std::string file = "type = 'empirical'\nfile = '" + folder.file("x.npy").string() + "'\n";
  EXPECT_EQ(measure(file).mean()(0), 2);
  EXPECT_EQ(measure(file + "weights = [1, 3]").mean()(0), 2.5);
  EXPECT_THAT(error_of(file + "dim = 2"), HasSubstr("t.toml:4: measure.dim is 2, expected 1, the"));
  EXPECT_THROW((void)measure("type = 'empirical'\nfile = 'none.npy'"), FileError);
}

TEST(ReadMeasure, ErrorsNameLineKeyAndValue) {
  struct Case {
    const char* text;
    const char* says;
  };
  for (const Case& bad : {
           Case{"dim = 2", "t.toml:1: measure.type is missing"},
           Case{"type = 'gausian'", "t.toml:2: measure.type is \"gausian\", expected one of"},
           Case{"type = 3", "t.toml:2: measure.type is 3, expected one of"},
           Case{"type = 'ball'\ndim = 2\nradios = 2", "t.toml:4: unknown key measure.radios"},
           Case{"type = 'uniform'\ndim = 2\nradius = 2", "t.toml:4: unknown key measure.radius"},
           Case{"type = 'ball'", "measure.dim is missing"},
           Case{"type = 'sphere'\ndim = 0", "measure.dim is 0, expected an integer in [1, "},
           Case{"type = 'uniform'\ndim = 'x'", "measure.dim is \"x\", expected an integer"},
           Case{"type = 'uniform'\ndim = 1.5", "measure.dim is 1.5, expected an integer"},
           Case{"type = 'uniform'\ndim = 1e9", "measure.dim is 1e+09, expected an integer"},
           Case{"type = 'ball'\ndim = 1\nradius = -1",
                "measure.radius is -1, expected a number > 0"},
           Case{"type = 'laplace'\ndim = 1\nb = 0", "measure.b is 0, expected a number > 0"},
           Case{"type = 'gaussian'", "t.toml:1: measure: expected dim, mean or cov"},
           Case{"type = 'dirac'", "measure.point is missing"},
           Case{"type = 'stationary'\nof = {type = 'gaussian', dim = 2}",
                "expected one of autocorrelation, ar or file"},
           Case{"type = 'stationary'\nar = 0.5", "measure.of is missing"},
           Case{"type = 'stationary'\nar = 0.5\nof = {type = 'uniform', dim = 2}",
                "stationary: of is uniform, expected a Gaussian law"},
           Case{"type = 'stationary'\nar = [[0.5]]\nof = {type = 'gaussian', dim = 2}",
                "measure.ar: shape is [1,1], expected [d,d]"},
           Case{"type = 'sum'\nparts = [{type = 'stationary', ar = 0.5, of = {type = 'gaussian', "
                "dim = 1}}]",
                "expected a law of independent tokens"},
           Case{"type = 'student'\ndim = 2", "measure.nu is missing"},
           Case{"type = 'student'\ndim = 2\nnu = 0", "measure.nu is 0, expected a number > 0"},
           Case{"type = 'elliptical'\ndim = 1", "measure.scales is missing"},
           Case{"type = 'elliptical'\nmean = [1]\ndim = 2\nscales = [1]", "measure.dim is 2"},
           Case{"type = 'elliptical'\ndim = 1\nscales = [1, -1]", "measure.scales[1] is -1"},
           Case{"type = 'elliptical'\ndim = 1\nradial = 'gamma'\nshape = 50\nbound = 10",
                "shape * bound is 500"},
           Case{"type = 'elliptical'\ndim = 1\nscales = [1]\nshape = 2",
                "unknown key measure.shape"},
           Case{"type = 'single_index'\nlink = 'sign'", "measure.index is missing"},
           Case{"type = 'single_index'\nindex = [1]\nlink = 'tahn'",
                "measure.link is \"tahn\", expected one of"},
           Case{"type = 'single_index'\nindex = [1]\nlink = 'polynomial'\n"
                "coefficients = [1, 2, 3, 4]",
                "expected 1 to 3 numbers"},
           Case{"type = 'gaussian'\nmean = []", "measure.mean is [], expected 1 to 16384 numbers"},
           Case{"type = 'gaussian'\ndim = 1000000", "measure.dim is 1000000, expected an integer"},
           Case{"type = 'gaussian'\ndim = 2\nmean = [1]",
                "measure.mean is [1], expected 2 numbers"},
           Case{"type = 'gaussian'\nmean = [1, nan]", "measure.mean[1] is nan, expected a number"},
           Case{"type = 'gaussian'\nmean = [1, true]",
                "measure.mean[1] is true, expected a number"},
           Case{"type = 'gaussian'\ndim = 2\ncov = -2.0",
                "t.toml:4: measure.cov: covariance: matrix is not a covariance: its smallest "
                "eigenvalue is -2"},
           Case{"type = 'gaussian'\ncov = [[1, 2], [2, 1]]", "measure.cov: covariance: matrix is"},
           Case{"type = 'gaussian'\ndim = 3\ncov = [[1]]", "measure.cov: shape is [1,1], expected"},
           Case{"type = 'gaussian'\ndim = 2\ncov = {kind = 'kcm', rho = 0.5, rh0 = 1}",
                "unknown key measure.cov.rh0"},
           Case{"type = 'empirical'", "t.toml:1: measure: expected either file or tokens"},
           Case{"type = 'empirical'\ntokens = [[1]]\nfile = 'x.npy'", "expected either file or"},
           Case{"type = 'empirical'\ntokens = []", "measure: empirical: tokens"},
           Case{"type = 'empirical'\ntokens = [[1, 2], [3]]",
                "measure.tokens[1] is [3], expected 2"},
           Case{"type = 'empirical'\ntokens = [[1], [2]]\nweights = [1]",
                "measure.weights is [1], expected 2 numbers"},
           Case{"type = 'empirical'\ntokens = [[1], [2]]\nweights = [1, -1]",
                "measure.weights[1] is -1, expected a number >= 0"},
           Case{"type = 'empirical'\ntokens = [[1], [2]]\nweights = [0, 0]",
                "measure.weights is [0, 0], expected numbers with a positive sum"},
           Case{"type = 'categorical'\nprobs = [-1, 2]",
                "t.toml:3: measure.probs[0] is -1, expected a number >= 0"},
           Case{"type = 'categorical'\nprobs = []", "measure.probs is [], expected numbers with"},
           Case{"type = 'categorical'\ndim = 3\nprobs = [1]", "measure.probs is [1], expected 3"},
           Case{"type = 'categorical'", "measure.dim is missing"},
           Case{"type = 'product'", "measure.parts is missing"},
           Case{"type = 'product'\nparts = []", "measure.parts is [], expected an array of tables"},
           Case{"type = 'product'\nparts = [3]", "measure.parts[0] is 3, expected a table"},
           Case{"type = 'product'\n[[measure.parts]]\ntype = 'ball'",
                "t.toml:3: measure.parts[0].dim is missing"},
           Case{"type = 'sum'\nparts = [{type = 'ball', dim = 1}, {type = 'ball', dim = 2}]",
                "t.toml:1: measure: sum: "},
           Case{"type = 'mixture'\nparts = [{type = 'ball', dim = 1}, {type = 'ball', dim = 2}]",
                "t.toml:1: measure: mixture: "},
           Case{"type = 'mixture'\nweights = [1]\nparts = [{type = 'ball', dim = 1}, {type = "
                "'ball', dim = 1}]",
                "measure.weights is [1], expected 2 numbers"},
           Case{"type = 'mixture'\nweights = [-1]\nparts = [{type = 'ball', dim = 1}]",
                "measure.weights[0] is -1, expected a number >= 0"},
           Case{"type = 'affine'\nparts = [{type = 'ball', dim = 1}, {type = 'ball', dim = 1}]",
                "measure.parts is [{"},
           Case{"type = 'affine'\nshift = [1, 2]\nparts = [{type = 'ball', dim = 1}]", "measure"},
           Case{"type = 'affine'\nmatrix = [[1, 2]]\nparts = [{type = 'ball', dim = 1}]",
                "measure.matrix: shape is [1,2], expected [any,1]"},
           Case{"type = 'product'\nparts = [{type = 'sum', parts = [{type = 'ball', dim = -1}]}]",
                "t.toml:3: measure.parts[0].parts[0].dim is -1, expected an integer"},
       }) {
    EXPECT_THAT(error_of(bad.text), HasSubstr(bad.says)) << bad.text;
  }
}

Attention attention(const std::string& text, Index dim) {
  const Config config = Config::parse("[attention]\n" + text, "t");
  Attention out = read_attention(config.root(), dim);
  config.check_all_used();
  return out;
}

TEST(ReadAttention, DefaultsAndForms) {
  const Attention plain = read_attention(Config().root(), 2);
  EXPECT_EQ(plain.U(), Matrix(Matrix::Identity(2, 2)));
  EXPECT_EQ(plain.V(), Matrix(Matrix::Identity(2, 2)));
  EXPECT_EQ(attention("U = 2.0\nscore_scale = 0.5", 2).U(), Matrix(Matrix::Identity(2, 2)));
  const Attention head =
      attention("K = [[1, 0]]\nQ = [[0, 2]]\nV = [[1, 1]]\nscore_scale = 0.5\nkind = 'linear'", 2);
  EXPECT_EQ(head.U(), (Matrix(2, 2) << 0, 1, 0, 0).finished());
  EXPECT_EQ(head.V(), (Matrix(1, 2) << 1, 1).finished());
  EXPECT_TRUE(head.has_kq());
}

TEST(ReadAttention, ErrorsNameKeyAndValue) {
  for (const auto& [text, says] : std::vector<std::tuple<const char*, const char*>>{
           {"U = [[1, 0]]", "t:2: attention.U: shape is [1,2], expected [2,2]"},
           {"V = [[1, 0, 0]]", "t:2: attention.V: shape is [1,3], expected [any,2]"},
           {"U = 1\nK = 1\nQ = 1", "t:2: attention.U: given beside K or Q"},
           {"K = 1", "t:1: attention.Q is missing"},
           {"K = [[1, 0]]\nQ = [[1]]", "t:3: attention.Q: shape is [1,1], expected [1,2]"},
           {"kind = 'hard'", "t:2: attention.kind is \"hard\", expected one of"},
           {"score_scale = 'x'", "t:2: attention.score_scale is \"x\", expected a number"},
           {"W = 1", "t:2: unknown key attention.W"},
       }) {
    try {
      (void)attention(text, 2);
      ADD_FAILURE() << "no error: " << text;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(says)) << text;
    }
  }
}

TEST(ReadQuery, PointsOrALaw) {
  const auto query = [](const char* text) {
    return read_query(Config::parse(std::string("[query]\n") + text, "t").root(), 2);
  };
  EXPECT_EQ(query("points = [[1, 2], [3, 4]]").points.rows(), 2);
  EXPECT_EQ(query("points = [1, 2]").points, (Matrix(1, 2) << 1, 2).finished());
  EXPECT_EQ(query("z = [1, 2]").points, (Matrix(1, 2) << 1, 2).finished());
  EXPECT_EQ(query("type = 'gaussian'\ndim = 2").law->name(), "gaussian");
  EXPECT_THROW((void)query("type = 'gaussian'\ndim = 3"), ConfigError);
  EXPECT_THROW((void)query("z = [1]"), ConfigError);
  EXPECT_THROW((void)query("z = [1, 2]\npoints = [[1, 2]]"), ConfigError);
  EXPECT_THROW((void)query("points = []"), ConfigError);
  EXPECT_THROW((void)query(""), ConfigError);
}

}  // namespace
}  // namespace esscher
