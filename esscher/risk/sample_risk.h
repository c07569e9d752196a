// The risk of one head on any task, as a mean over draws of the task. A prompt of finite length is
// averaged over by one of these engines:
//   exact      not drawn at all (draw_error.h); the law of every draw must be Gaussian
//   direct     drawn token by token, any law
//   automatic  exact where the law of the draw is Gaussian, else direct
// An infinite prompt uses the measure's own tilted moments and draws no token.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "esscher/base/estimate.h"
#include "esscher/base/length.h"
#include "esscher/risk/draw_error.h"

namespace esscher {

// One draw of the task made ready for a prompt length: a law to average over, or tokens.
struct FixedDraw {
  ContextDraw draw;
  std::optional<GaussianLaw> law;    // the prompt is averaged over
  std::optional<NodeTables> tables;  // of the length of the prompt, with a law
  bool drawn = false;                // draw.tokens are a prompt of this length

  // Half the squared error; its gradient is added to *gradient.
  [[nodiscard]] double error(const Readout& at, ModelKind kind, Readout* gradient) const;
};

// Fixes draws of a task at one prompt length.
class DrawFixer {
 public:
  // `kept` draws live at the same time: CapabilityError if their prompts take more than 8 GiB.
  // CapabilityError too for the engine sampled, which no task has.
  DrawFixer(Task task, Length length, Engine engine, std::int64_t kept = 1);

  // The draw of this stream. Throws CapabilityError if engine = exact has no formula.
  [[nodiscard]] FixedDraw operator()(const Stream& own) const;
  [[nodiscard]] const Task& task() const { return task_; }

 private:
  Task task_;
  Length length_;
  Engine engine_;
  std::int64_t kept_;
  std::optional<NodeTables> tables_;
};

// Mean of half squared errors over n fresh draws of the task, n >= 2. The engine of the answer is
// direct if tokens were drawn, else quadrature. It is heavy if few draws carry it (carriers.h).
Estimate simulated_risk(const Task& task, const Readout& at, ModelKind kind, Length length,
                        std::int64_t n, const Stream& stream, Engine engine = Engine::automatic);

// The same average over n draws fixed once: a smooth function of (U, r) with an exact gradient, fit
// for gradient_flow. Prompts that are drawn are kept (n L D numbers; beyond 2^30 CapabilityError).
// For one stream the draws are the same at every L, and a prompt is a prefix of the longer one.
class SampleRisk {
 public:
  SampleRisk(const Task& task, ModelKind kind, Length length, std::int64_t n, const Stream& stream,
             Engine engine = Engine::automatic);
  double operator()(const Readout& at, Readout* gradient = nullptr) const;

 private:
  ModelKind kind_;
  Index token_dim_;
  std::shared_ptr<const std::vector<FixedDraw>> draws_;
};

}  // namespace esscher
