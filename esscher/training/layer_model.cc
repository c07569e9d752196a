#include "esscher/training/layer_model.h"

#include <cmath>
#include <limits>

#include "esscher/base/error.h"
#include "esscher/risk/layer_error.h"

namespace esscher {

FamilyMap LayerModel::map() const {
  std::vector<ModelKind> kinds;
  for (const LayerHead& head : start.heads) kinds.push_back(head.kind);
  return {family, task, kinds};
}

SmoothFunction layer_objective(const ContextTask& task, const FamilyMap& map, Length length,
                               const RiskOptions& options) {
  const Layer like = map.layer(Vector::Zero(map.size()));
  const bool drawn =
      choose_layer_risk(task, like, length, options.engine).method == RiskMethod::draws;
  if (!drawn && !length.is_infinite() && !has_gradient_formula(like)) {
    throw CapabilityError("layer: several softmax heads have no formula of the gradient at L = " +
                          length.text() + "; engine \"auto\" descends on fixed prompts");
  }
  return [risk = layer_risk_function(task, like, length, options), map](const Vector& phi,
                                                                        Vector& gradient) {
    gradient = Vector::Constant(phi.size(), std::numeric_limits<double>::quiet_NaN());
    try {
      Layer slope;
      const double value = risk(map.layer(phi), &slope);
      gradient = map.pull_back(slope);
      return value;
    } catch (const CapabilityError&) {
      return HUGE_VAL;
    } catch (const DomainError&) {
      return HUGE_VAL;
    }
  };
}

}  // namespace esscher
