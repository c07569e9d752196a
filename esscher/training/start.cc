#include "esscher/training/start.h"

#include <cmath>
#include <span>
#include <string>

#include "esscher/base/error.h"
#include "esscher/random/stream.h"

namespace esscher {
namespace {

// One uniform per entry; only the last factor of KQVO (one output of all heads, fan-in H D) has
// another bound.
Vector torch_start(const Parametrisation& space, Index heads, const Stream& stream) {
  const Index D = space.token_dim;
  const double bound = 1 / std::sqrt(static_cast<double>(D));
  Vector theta(space.size());
  for (Index i = 0; i < theta.size(); ++i) {
    theta(i) = bound * (2 * stream.uniform(static_cast<std::uint64_t>(i)) - 1);
  }
  if (space.space == ParameterSpace::KQVO) {
    theta.tail(D) /= std::sqrt(static_cast<double>(heads));
  }
  return theta;
}

Vector normal_start(const Parametrisation& space, double deviation, const Stream& stream) {
  Vector theta(space.size());
  stream.fill_normal(0, std::span<double>(theta.data(), static_cast<std::size_t>(theta.size())));
  return deviation * theta;
}

Readout identity_start(Index d, double alpha) {
  Readout start = Readout::zero(d + 1);
  start.U.topLeftCorner(d, d).diagonal().setConstant(alpha);
  start.r(d) = alpha;
  return start;
}

void check(Index heads, const StartOptions& options) {
  if (heads < 1 || heads > kMaxHeads) {
    throw_argument("model", "heads", std::to_string(heads),
                   "an integer from 1 to " + std::to_string(kMaxHeads));
  }
  if (options.kind == StartKind::dense) {
    check_dimension("init", "number of (U, r) given", static_cast<long>(options.dense.size()),
                    heads);
  } else if (!options.dense.empty()) {
    throw_argument("init", "kind", std::string(name(options.kind)),
                   "dense, because (U, r) are given");
  }
  if (options.shape.size() > 0 && (heads > 1 || options.kind != StartKind::balanced)) {
    throw_argument("init", "shape", "given", "none unless one head has a balanced start");
  }
}

}  // namespace

Vector start_parameters(const Parametrisation& space, Index heads, const StartOptions& options,
                        std::uint64_t run_seed) {
  check(heads, options);
  const Stream stream = Stream(options.seed.value_or(run_seed)).split(0);
  const Index d = space.token_dim - 1, size = space.size();
  const auto head = [&](Index h) -> Vector {
    const Stream own = stream.split(static_cast<std::uint64_t>(h));
    switch (options.kind) {
      case StartKind::torch: return torch_start(space, heads, own);
      case StartKind::identity: return parameters_of(space, identity_start(d, options.alpha));
      case StartKind::normal: return normal_start(space, options.alpha, own);
      case StartKind::dense:
        return parameters_of(space, options.dense[static_cast<std::size_t>(h)]);
      case StartKind::balanced: break;
    }
    return parameters_of(space, heads == 1 ? balanced_start(d, options.alpha, options.shape)
                                           : random_balanced(d, options.alpha, own));
  };
  Vector all(heads * size);
  for (Index h = 0; h < heads; ++h) all.segment(h * size, size) = head(h);
  return all;
}

Readout random_balanced(Index d, double alpha0, const Stream& stream) {
  Matrix theta(d, d);
  stream.fill_normal(0, std::span<double>(theta.data(), static_cast<std::size_t>(theta.size())));
  return balanced_start(d, alpha0, theta * theta.transpose());
}

Readout balanced_start(Index d, double alpha0, const MatrixView& shape) {
  Matrix P = shape.size() == 0 ? Matrix(Matrix::Identity(d, d)) : Matrix(shape);
  check_dimension("balanced_start", "shape", P.rows(), d);
  psd_factor("balanced_start", "shape", P);
  const double norm = P.norm();
  if (!(norm > 0)) throw_argument("balanced_start", "shape", "zero", "a PSD matrix, not zero");
  Readout out = Readout::zero(d + 1);
  out.U.topLeftCorner(d, d) = alpha0 / norm * P;
  out.r(d) = alpha0;
  return out;
}

double balanced_start_bound(const LinearRegressionTask& task) {
  const double d = static_cast<double>(task.dim);
  return std::sqrt(2.0) / (std::pow(d, 0.25) * max_eigenvalue(task.prompt_cov));
}

}  // namespace esscher
