// Linear regression with Gaussian features (task/regression.h) in the form of the other tasks
// (task/context.h): tokens (x, w'x + noise) are Gaussian given w, and the best prediction from a
// prompt is ridge regression.
#pragma once

#include "esscher/task/context.h"
#include "esscher/task/regression.h"

namespace esscher {

// Throws CapabilityError for features that are not Gaussian.
ContextTask regression_task_nodes(const LinearRegressionTask& task);

}  // namespace esscher
