// `esscher paper --which general`: Theorem 4.3 on tasks beyond linear regression with Gaussian features.
// One softmax head is trained on infinite prompts; on its way R_L is compared with R_inf. Numbers,
// checks and verdict functions as in verdicts.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "esscher/paper/judged.h"
#include "esscher/paper/section.h"
#include "esscher/task/context.h"

namespace esscher::paper {

Statement general_single_index();    // labels tanh(w x) + noise
Statement general_classification();  // two Gaussian classes
Statement general_pool();            // w from a finite pool
Statement general_bounded();         // features that are +-1 or uniform

// A task of one feature, and the flow of (u, v) on it: U = [[u, 0], [0, 0]], V = (0, v), no residual.
struct GeneralCase {
  std::string name;
  std::string key;  // of its independent values
  ContextTask task;
  double u = 0, v = 0;    // start
  bool gaussian = false;  // tokens given the task, so that the limit is linear
  bool slow = false;      // scores of queries are unbounded and labels curved: the slow regime
};
std::vector<GeneralCase> single_index_cases();
std::vector<GeneralCase> classification_cases();
std::vector<GeneralCase> pool_cases();
std::vector<GeneralCase> bounded_cases();

// The way ends here; tests/paper/general.py has the same. It is known at kGeneralPoints + 1 times, and
// the search for the largest gap begins with one of kGeneralStride.
inline constexpr double kGeneralEnd = 30;
inline constexpr int kGeneralPoints = 60, kGeneralStride = 10;
inline constexpr double kGeneralEps = 0.002;

struct SupGap {
  std::int64_t L = 0;
  double gap = 0, error = 0;  // sup over the way of |R_L - R_inf|, and its quadrature error
};
struct GeneralNumbers {
  std::string name = {}, key = {};
  double risk = 0, risk_error = 0;    // R_inf at the end of the way
  std::vector<SupGap> at = {};        // lengths increasing
  double start = 0;                   // |R_L - R_inf| at the start, at the last length
  std::optional<double> linear = {};  // the sup against linear attention, at the last length
  double exponent = 1;                // predicted between the last two lengths
  std::optional<double> length = {};  // real L where the sup is kGeneralEps
};
inline constexpr double kGeneralTolerance = 2e-3;
inline constexpr double kGeneralExponentTolerance = 0.1;
Checks general_checks(std::span<const GeneralNumbers> cases);
Verdict judge_general(std::span<const GeneralNumbers> cases);

}  // namespace esscher::paper
