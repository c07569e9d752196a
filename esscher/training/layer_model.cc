#include "esscher/training/layer_model.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/risk/layer_error.h"
#include "esscher/training/start.h"

namespace esscher {

LayerMap LayerModel::map() const {
  std::vector<ModelKind> kinds;
  for (const LayerHead& head : start.heads) kinds.push_back(head.kind);
  if (!factors.is_factored()) {
    if (factors.score_scale == 1) return FamilyMap(family, task, kinds);
    throw_argument("layer", "score_scale", to_text(factors.score_scale),
                   "1 unless parametrisation is KQV or KQVO");
  }
  if (family != LayerFamily::full) {
    throw_argument("layer", "family", std::string(name(family)),
                   "\"full\", because the parametrisation is " + std::string(name(factors.space)));
  }
  return {factors, task, kinds};
}

Vector LayerModel::theta0() const { return theta.size() > 0 ? theta : map().coordinates(start); }

Layer balanced_layer(const ContextTask& task, const std::vector<ModelKind>& kinds, double alpha,
                     const MatrixView& shape, const Stream& stream) {
  const Index D = task.token_dim, m = task.out_dim, q = m < D ? D - 1 : D;
  Layer out{Matrix::Zero(m, D), {}};
  for (const ModelKind kind : kinds) {
    const Stream own = stream.split(out.heads.size());
    const Readout start =
        kinds.size() == 1 ? balanced_start(q, alpha, shape) : random_balanced(q, alpha, own);
    if (m < D) {
      out.heads.push_back({kind, start.U, start.r.transpose()});
    } else {
      const Matrix S = start.U.topLeftCorner(q, q);
      out.heads.push_back({kind, S, S});
    }
  }
  return out;
}

LayerModel with_torch_start(LayerModel model, const Stream& stream) {
  const LayerMap map = model.map();
  model.theta = map.torch_start(stream);
  model.start = map.layer(model.theta);
  return model;
}

SmoothFunction layer_objective(const ContextTask& task, const LayerMap& map, Length length,
                               const RiskOptions& options) {
  const Layer like = map.layer(Vector::Zero(map.size()));
  return [risk = layer_risk_function(task, like, length, options), map](const Vector& theta,
                                                                        Vector& gradient) {
    gradient = Vector::Constant(theta.size(), std::numeric_limits<double>::quiet_NaN());
    try {
      Layer slope;
      const double value = risk(map.layer(theta), &slope);
      gradient = map.pull_back(theta, slope);
      return value;
    } catch (const CapabilityError&) {
      return HUGE_VAL;
    } catch (const DomainError&) {
      return HUGE_VAL;
    }
  };
}

}  // namespace esscher
