// The one entry point to risks: half a mean squared error of any number of heads on any task, by
// the best method the case allows. choose_risk() answers before any work.
//
//   one head, linear regression with Gaussian features
//     L = infinity, or linear attention     closed_form     closed_form.h
//     softmax at finite L                   quadrature      quadrature.h, nodes over (w, x);
//                                                           query_risk.h, over x where w has a formula
//   one head, other features or your tasks  draws           sample_risk.h; a prompt is averaged over
//                                                           where its law is Gaussian, else drawn
//   several heads                           fresh_prompts   batch.h; scores where features are
//                                                           Gaussian, else tokens
#pragma once

#include <functional>
#include <span>
#include <string>

#include "esscher/base/enum_names.h"
#include "esscher/base/estimate.h"
#include "esscher/base/length.h"
#include "esscher/random/stream.h"
#include "esscher/risk/model_kind.h"
#include "esscher/risk/readout.h"
#include "esscher/task/task.h"

namespace esscher {

// A differentiable risk: its value at (U, r); the gradient is overwritten when asked for.
using RiskFunction = std::function<double(const Readout& at, Readout* gradient)>;

struct RiskOptions {
  int log2_nodes = 12;        // quadrature of softmax at finite L
  int scramblings = 8;        // independent repetitions behind a standard error
  std::int64_t draws = 4000;  // of tasks, or prompts of several heads
  // direct draws prompts even where a formula exists; exact and quadrature, which ask for the same,
  // refuse where none does
  Engine engine = Engine::automatic;
  Stream stream{0};
};

enum class RiskMethod { closed_form, quadrature, draws, fresh_prompts };

constexpr auto enum_names(RiskMethod) {
  return EnumNames<RiskMethod, 4>{"method of a risk",
                                  {{{RiskMethod::closed_form, "closed_form"},
                                    {RiskMethod::quadrature, "quadrature"},
                                    {RiskMethod::draws, "draws"},
                                    {RiskMethod::fresh_prompts, "fresh_prompts"}}}};
}

struct RiskChoice {
  RiskMethod method = RiskMethod::closed_form;
  // How prompts are averaged over. For draws it may be automatic: each law decides for itself.
  Engine engine = Engine::exact;
  std::string reason;  // a sentence
};

// The method for this many heads. Throws ArgumentError for no head, and CapabilityError with what
// to ask for instead if the engine of the options does not serve the case.
RiskChoice choose_risk(const AnyTask& task, std::size_t heads, ModelKind kind, Length length,
                       Engine engine);

// The risk with its standard error: 0 for closed forms, over scramblings for quadrature, over draws
// or batches of prompts otherwise. The draws are others than those of risk_function. The engine is
// exact for closed forms only.
Estimate risk(const AnyTask& task, std::span<const Readout> heads, ModelKind kind, Length length,
              const RiskOptions& options);
Estimate risk(const AnyTask& task, const Readout& head, ModelKind kind, Length length,
              const RiskOptions& options);

// The risk of one head as a differentiable function, for flows: a closed form, fixed nodes or fixed
// draws, the same at every L. Heads that the function will be asked for may be named in `near`: the
// nodes are then widened towards the sharp queries of the sharpest one, and if all are of block form
// (nodes.h), which flows keep, tasks are averaged over by hand and U is read without its row beta.
RiskFunction risk_function(const AnyTask& task, ModelKind kind, Length length,
                           const RiskOptions& options, std::span<const Readout> near = {});

}  // namespace esscher
