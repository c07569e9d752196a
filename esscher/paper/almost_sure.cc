// Almost-sure convergence: one prompt, growing, for five laws of tokens. Tokens are drawn in
// blocks and merged into one tilted sum (tilt/state.h), so memory does not grow with the prompt.
#include <algorithm>
#include <cmath>

#include "esscher/attention/attention.h"
#include "esscher/concentration/constant.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/any_measure.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/empirical.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/sphere.h"
#include "esscher/paper/statements.h"
#include "esscher/paper/text.h"
#include "esscher/report/vega_lite.h"
#include "esscher/tilt/tilt.h"

namespace esscher::paper {
namespace {

constexpr std::string_view kId = "almost-sure";
constexpr double kAllowed = 6;  // deviations of the central limit theorem
constexpr std::int64_t kFrom = 1000;
constexpr Index kBlock = 1 << 17;

struct Law {
  std::string name;
  AnyMeasure mu;
};

// Unit covariance in the plane, except the mixture, which is neither centred nor symmetric.
std::vector<Law> laws() {
  const Matrix I = Matrix::Identity(2, 2);
  const Vector centre = Vector::Zero(2);
  const Vector left{{-1.0, 0.5}}, right{{2.0, -1.0}};
  return {{"Gaussian", Gaussian(I)},
          {"Rademacher", Rademacher(2)},
          {"uniform", Affine(centre, std::sqrt(3.0) * I, Uniform(2))},
          {"sphere", Sphere(2, std::sqrt(2.0))},
          {"Gaussian mixture",
           Mixture(Vector{{2.0, 1.0}}, {Gaussian(left, 0.5 * I), Gaussian(right, 0.25 * I)})}};
}

const Attention& attention() {
  static const Attention layer =
      Attention::from_uv(Matrix{{0.8, -0.3}, {0.2, 0.6}}, Matrix{{1.0, 0.5}, {-0.5, 1.0}});
  return layer;
}
const Vector kQuery{{1.0, -0.8}};

std::vector<std::int64_t> lengths(const Options& options) {
  const int decades = options.pick(4, 7, 7);
  std::vector<std::int64_t> out;
  for (int i = 4; i <= 4 * decades; ++i) out.push_back(std::llround(std::pow(10.0, i / 4.0)));
  return out;
}

int seeds(const Options& options) { return options.pick(2, 5, 8); }

std::vector<std::string> keys(const Options& options) {
  std::vector<std::string> out;
  for (const Law& law : laws()) {
    for (int s = 0; s < seeds(options); ++s) {
      out.push_back("almost-sure/" + law.name + "/prompt " + std::to_string(s + 1));
    }
  }
  return out;
}

std::vector<Row> compute(const Options& options, std::size_t cell) {
  const int per_law = seeds(options);
  const Law law = laws().at(cell / static_cast<std::size_t>(per_law));
  const Stream stream = Stream(options.seed).split(22).split(cell);
  const Vector a = attention().tilt(kQuery);
  const Vector limit = options.sign(kId) * attention()(law.mu, kQuery);
  const double constant = asymptotic_constant(Metric::output, law.mu, attention(), kQuery);
  TiltState state = TiltState::neutral(2);
  std::uint64_t block = 0;
  std::vector<Row> rows;
  for (const std::int64_t L : lengths(options)) {
    while (state.count < L) {
      const Index n = std::min<Index>(kBlock, L - state.count);
      const Empirical part = law.mu.sample(stream.split(block++), n);
      const Rows<double> tokens(part.tokens().data(), n, 2);
      merge(state, tilt<double>({a.data(), 2}, tokens, tokens));
    }
    rows.push_back({{"section", kId},
                    {"tokens", law.name},
                    {"prompt", std::to_string(cell % static_cast<std::size_t>(per_law) + 1)},
                    {"L", L},
                    {"error", (attention().V() * state.mean() - limit).norm()},
                    {"clt", std::sqrt(constant / static_cast<double>(L))}});
  }
  return rows;
}

std::vector<std::string> formulas() {
  using namespace mathml;
  const auto T = [](const std::string& law) {
    return id("T") + op("[") + law + op("]") + paren(id("z"));
  };
  const std::string hat = sub("<mover><mi>μ</mi><mo>^</mo></mover>", id("L"));
  return {math(T(hat) + op("→") + T(id("μ")) + text("   almost surely as L → ∞"))};
}

struct Summary {
  double worst = 0;  // largest error / CLT deviation at L >= kFrom
  std::int64_t worst_L = 0;
  double last = 0;  // largest error at the end
  double clt = 0;
};

SectionReport report(const Options& options, const std::vector<Row>& rows) {
  std::map<std::string, Summary> by_law;
  Json data = Json::array();
  const std::int64_t end = lengths(options).back();
  for (const Row& row : rows) {
    const std::string tokens = row["tokens"];
    const std::int64_t L = row["L"];
    const double error = row["error"], clt = row["clt"];
    data.push_back(row);
    if (row["prompt"] == "1") {
      data.push_back({{"tokens", tokens}, {"prompt", "predicted"}, {"L", L}, {"error", clt}});
    }
    Summary& s = by_law[tokens];
    if (L >= kFrom && error / clt > s.worst) s.worst = error / clt, s.worst_L = L;
    if (L == end) s.last = std::max(s.last, error), s.clt = clt;
  }
  Json table = Json::array();
  bool holds = true;
  double worst = 0, last = 0;
  std::string failure;
  for (const Law& law : laws()) {
    const Summary& s = by_law.at(law.name);
    table.push_back({law.name, law.mu.sub_gaussian(), s.last, s.clt, s.worst});
    worst = std::max(worst, s.worst);
    last = std::max(last, s.last);
    if (s.worst > kAllowed && failure.empty()) {
      holds = false;
      failure = "Fails for " + law.name + " tokens at L = " + show(s.worst_L) + ": the error is " +
                show(s.worst) + " deviations of the central limit theorem.";
    }
  }
  const std::string n = std::to_string(seeds(options));
  const std::string text = "Every one of the " + n + " × 5 prompts converges: at L = " + show(end) +
                           " the largest error is " + show(last) + ", and from L = " + show(kFrom) +
                           " on no prompt is ever further than " + show(worst) +
                           " central-limit deviations from the limit (allowed " + show(kAllowed) +
                           ").";
  std::vector<std::string> hypotheses{
      "tokens are independent with one law: prompts are streams of tokens, a shorter prompt is the "
      "beginning of a longer one"};
  for (const Law& law : laws()) {
    hypotheses.push_back(law.name + ": e^{⟨a,z′⟩} is integrable at a = Uz, Λ(a) = " +
                         show(law.mu.log_mgf(attention().tilt(kQuery))));
  }
  Json section = {
      {"statement",
       "For a fixed query, attention over a prompt of independent tokens converges almost surely "
       "to attention over their law: for almost every infinite prompt, reading more of that same "
       "prompt brings the output to the limit. This is what makes an infinite prompt meaningful."},
      {"hypotheses", hypotheses},
      {"verdict", verdict(holds ? "holds" : "fails", holds ? text : failure)},
      {"text",
       "Each curve is ONE prompt that keeps growing, not an average. Curves wander, as they must, "
       "but stay around the deviation the central limit theorem predicts, `√(constant/L)`, whose "
       "constant is `e^{Λ(2a)−2Λ(a)} [tr V C₂ₐ Vᵀ + ‖V(m₂ₐ−mₐ)‖²]`."},
      {"formulas", formulas()},
      {"figures",
       {{{"id", "paths"},
         {"caption",
          "Distance to the limit along growing prompts, one colour per prompt, and the deviation "
          "predicted by the central limit theorem. For every law the error falls like 1/√L."},
         {"spec", curve_chart({.data = "almost_sure",
                               .x = {.column = "L", .title = "prompt length L", .log = true},
                               .y = {.column = "error", .title = "‖T[μ̂] − T[μ]‖", .log = true},
                               .series = "prompt",
                               .facet = "tokens",
                               .points = false,
                               .height = 200})}}}},
      {"tables",
       {{{"title", "At the end of the longest prompt, L = " + show(end)},
         {"columns",
          {"tokens", "sub-Gaussian σ", "largest error", "predicted deviation",
           "worst error / deviation, L ≥ 1000"}},
         {"rows", table}}}}};
  return {section, {{"almost_sure", data}}};
}

}  // namespace

Section almost_sure() {
  return {kId, "Almost-sure convergence: one prompt, growing", keys, compute, report};
}

}  // namespace esscher::paper
