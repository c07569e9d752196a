#include "esscher/report/setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <vector>

#include "esscher/base/number_text.h"

namespace esscher {
namespace {

constexpr Index kShownEntries = 4;

std::string capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// "Gaussian tokens, mean 0 and covariance 0.5 I": the law with its first two moments.
std::string law_text(const AnyMeasure& law) {
  const Vector m = law.mean();
  const Matrix cov = law.second_moment() - m * m.transpose();
  const bool centred = m.cwiseAbs().maxCoeff() <= 1e-12 * (1 + std::sqrt(cov.trace()));
  return fmt::format("law {}, {} and covariance {}", capital(law.name()),
                     centred ? std::string("mean 0") : "a mean of norm " + brief(m.norm(), 3),
                     matrix_text(cov));
}

}  // namespace

std::string task_words(std::string type) {
  std::ranges::replace(type, '_', '-');
  return type;
}

std::string matrix_text(const Matrix& M) {
  const double size = M.cwiseAbs().maxCoeff();
  const bool square = M.rows() == M.cols();
  const auto close = [&](double x, double y) { return std::abs(x - y) <= 1e-12 * size; };
  bool diagonal = square, even = square;
  for (Index i = 0; i < M.rows(); ++i) {
    for (Index j = 0; j < M.cols(); ++j) {
      if (i != j && !close(M(i, j), 0)) diagonal = even = false;
      if (i == j && !close(M(i, i), M(0, 0))) even = false;
    }
  }
  if (square && M.rows() == 1) return brief(M(0, 0), 4);
  if (even) return M(0, 0) == 1 ? "I" : brief(M(0, 0), 4) + " I";
  if (diagonal && M.rows() <= kShownEntries) {
    std::string out;
    for (Index i = 0; i < M.rows(); ++i) out += (i > 0 ? ", " : "") + brief(M(i, i), 3);
    return "diag(" + out + ")";
  }
  return fmt::format("a {} × {} matrix of norm {}", M.rows(), M.cols(), brief(M.norm(), 3));
}

std::string setting_of(const Problem& problem) {
  std::string out =
      fmt::format("Tokens in dimension {} have the {}.", problem.mu.dim(), law_text(problem.mu));
  if (problem.nu) {
    out += " Queries have the " + law_text(*problem.nu) + ".";
  } else {
    out += fmt::format(" The {} queries are given.", problem.points.rows());
  }
  return out + " The layer has U = " + matrix_text(problem.attention.U()) +
         " and V = " + matrix_text(problem.attention.V()) + ".";
}

std::string setting_of(const AnyTask& any) {
  if (!any.is_regression()) {
    return fmt::format("The task is {}, with tokens in dimension {}.", any.name(), any.token_dim());
  }
  const LinearRegressionTask& task = any.regression();
  std::string out = fmt::format(
      "The task is linear regression in context in dimension {}: {} features with covariance {}",
      task.dim, task.features == Features::gaussian ? "Gaussian" : name(task.features),
      matrix_text(task.prompt_cov));
  if ((task.query_cov - task.prompt_cov).norm() > 1e-12 * task.prompt_cov.norm()) {
    out += ", queries with covariance " + matrix_text(task.query_cov);
  }
  out += fmt::format(", task vectors of variance {}", brief(task.task_variance, 3));
  if (task.noise_variance > 0) {
    return out + fmt::format(", label noise of variance {}{}.", brief(task.noise_variance, 3),
                             task.query_noise ? " on prompt and query" : " on the prompt");
  }
  return out + " and labels without noise.";
}

std::string training_setting(const TrainConfig& config) {
  const Length L = config.length;
  const std::string tokens =
      (L.is_infinite() ? std::string("infinitely many") : brief(L.count())) + " tokens";
  const std::string task = config.layer ? setting_of(config.layer->task) : setting_of(config.task);
  if (config.gradient == Engine::exact) {
    return task + " The gradients are those of the exact risk of prompts of " + tokens + ".";
  }
  return task + fmt::format(" The gradients come from fresh prompts of {}, {} at a time.", tokens,
                            config.batch);
}

std::string setting_of(const ContextTask& task) {
  const std::string tokens = fmt::format("tokens in dimension {}", task.token_dim);
  switch (task.type) {
    case TaskType::denoising: return "The task is denoising a Gaussian mixture: " + tokens + ".";
    case TaskType::single_index: return "The task is a single-index label: " + tokens + ".";
    case TaskType::classification:
      return "The task is two Gaussian classes: " + tokens +
             (task.loss == TaskLoss::squared ? "." : ", judged by the logistic loss.");
    case TaskType::pool:
      return fmt::format("The task is linear regression with one of {} vectors: {}.",
                         task.strata.size(), tokens);
    case TaskType::linear:
      return "The task is linear regression with its own law of w or of covariances: " + tokens +
             ".";
    case TaskType::regression: return "The task is linear regression: " + tokens + ".";
  }
  return "";
}

Page with_setting(const std::string& setting, Page page) {
  page.setting = page.setting.empty() ? setting : setting + " " + page.setting;
  return page;
}

}  // namespace esscher
