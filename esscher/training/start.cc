#include "esscher/training/start.h"

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/training/flow.h"

namespace esscher {
namespace {

void fill_uniform(const Stream& stream, std::uint64_t first, double bound, Eigen::Ref<Vector> out) {
  for (Index i = 0; i < out.size(); ++i) {
    out(i) = bound * (2 * stream.uniform(first + static_cast<std::uint64_t>(i)) - 1);
  }
}

// One uniform per entry; only the last factor of KQVO (one output of all heads, fan-in H D) has
// another bound.
Vector torch_start(const Parametrisation& space, Index heads, const Stream& stream) {
  const Index D = space.token_dim;
  const double bound = 1 / std::sqrt(static_cast<double>(D));
  Vector theta(space.size());
  fill_uniform(stream, 0, bound, theta);
  if (space.space == ParameterSpace::KQVO) {
    theta.tail(D) /= std::sqrt(static_cast<double>(heads));
  }
  return theta;
}

Readout head_start(Index d, Index heads, const InitOptions& options, const Stream& stream) {
  if (options.kind == InitKind::small_identity) {
    Readout start = Readout::zero(d + 1);
    start.U.topLeftCorner(d, d).diagonal().setConstant(options.alpha);
    start.r(d) = options.alpha;
    return start;
  }
  if (heads == 1) return balanced_start(d, options.alpha);
  Matrix theta(d, d);
  stream.fill_normal(0, std::span<double>(theta.data(), static_cast<std::size_t>(theta.size())));
  return balanced_start(d, options.alpha, theta * theta.transpose());
}

}  // namespace

std::string_view name(InitKind kind) {
  switch (kind) {
    case InitKind::torch: return "torch";
    case InitKind::balanced: return "balanced";
    case InitKind::small_identity: return "small_identity";
    case InitKind::dense: return "dense";
  }
  return "?";
}

InitKind parse_init_kind(const std::string& text) {
  for (const auto kind :
       {InitKind::torch, InitKind::balanced, InitKind::small_identity, InitKind::dense}) {
    if (text == name(kind)) return kind;
  }
  throw_argument("init", "kind", text, "torch, balanced, small_identity or dense");
}

Vector initial_parameters(const Parametrisation& space, Index heads, const InitOptions& options,
                          const Stream& stream) {
  if (heads < 1) throw_argument("model", "heads", std::to_string(heads), "an integer >= 1");
  if (options.kind == InitKind::dense) {
    check_dimension("init", "number of (U, r) given", static_cast<long>(options.dense.size()),
                    heads);
  }
  Vector all(heads * space.size());
  for (Index h = 0; h < heads; ++h) {
    const Stream own = stream.split(static_cast<std::uint64_t>(h));
    auto theta = all.segment(h * space.size(), space.size());
    switch (options.kind) {
      case InitKind::torch: theta = torch_start(space, heads, own); break;
      case InitKind::dense:
        theta = parameters_of(space, options.dense[static_cast<std::size_t>(h)]);
        break;
      case InitKind::balanced:
      case InitKind::small_identity:
        theta = parameters_of(space, head_start(space.token_dim - 1, heads, options, own));
        break;
    }
  }
  return all;
}

}  // namespace esscher
