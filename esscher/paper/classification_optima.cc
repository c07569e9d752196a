// What a softmax head without residual learns from two classes N(m, G) and N(-m, G) on the infinite
// prompt. With G = 1 and m = 1 in dimension one, U = [[u1, 0], [u2, 0]] and V = (0, v) it predicts
//
//   v tanh((u1 m + u2) x),   and Bayes' rule is tanh(m x)
//
// so u1 m + u2 = m, v = 1 is a family of optima, and (-U, -V) is the other one. At U = V = 0 the
// Hessian is [[0, -m C], [-m C', 0]] in V and the column of U, C = Cov(token) = [[G + m^2, m], [m, 1]].
#include <cmath>

#include "esscher/base/eigensystem.h"
#include "esscher/base/number_text.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/mixture_statements.h"
#include "esscher/paper/test_laws.h"
#include "esscher/risk/layer_risk.h"
#include "esscher/task/classification.h"
#include "esscher/training/runge_kutta.h"

namespace esscher::paper {
namespace {

constexpr double kMean = 1;  // tests/paper/mixtures.py has the same
constexpr double kOptimumError = 1e-8;
constexpr double kSaddleError = 1e-4;
constexpr double kRateError = 0.02;
constexpr double kLeakError = 1e-9;
constexpr double kConservedError = 1e-5;

// ---- rows and cells

enum class OptimaKind { number, flow };

constexpr auto enum_names(OptimaKind) {
  return EnumNames<OptimaKind, 2>{"kind of row",
                                  {{{OptimaKind::number, "number"}, {OptimaKind::flow, "flow"}}}};
}

struct OptimaRow {
  OptimaKind kind = OptimaKind::number;
  std::optional<std::string> what = {};
  double value = 0, value_error = 0;  // of a number; the excess of a flow
  std::optional<double> start = {}, t = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("kind", row.kind, "", "what the row holds");
    column("what", row.what, "", "name of the number");
    column("value", row.value, "", "the number, or the excess risk along a flow");
    column("value_error", row.value_error, "", "its quadrature error");
    column("start", row.start, "", "u and v at the start of a flow");
    column("t", row.t, "", "time");
  }
};

OptimaRow number(const char* what, double value, double error = 0) {
  return {.kind = OptimaKind::number, .what = what, .value = value, .value_error = error};
}

ContextTask two_classes(const Vector& m, const Matrix& G) {
  ClassificationTask task;
  task.weights = Vector::Constant(2, 0.5);
  task.cov = G;
  task.means.fixed = Matrix(2, m.size());
  task.means.fixed << m.transpose(), -m.transpose();
  return classification_task(task);
}

ContextTask line_task() { return two_classes(Vector::Constant(1, kMean), Matrix::Identity(1, 1)); }

// U = [[u1, 0], [u2, 0]], V = (0, v), no residual.
Layer line_layer(double u1, double u2, double v) {
  Layer out{.W = Matrix::Zero(1, 2), .heads = {{.U = Matrix::Zero(2, 2), .V = Matrix::Zero(1, 2)}}};
  out.heads[0].U.col(0) << u1, u2;
  out.heads[0].V(0, 1) = v;
  return out;
}

std::vector<OptimaRow> optima() {
  const ContextTask task = line_task();
  const Length L = Length::infinity();
  const Estimate bayes = reference_risks(task, L, {}).bayes;
  const auto over = [&](const Layer& layer) {
    return layer_risk(task, layer, L, {}).value / bayes.value;
  };
  return {number("bayes", bayes.value, bayes.std_error), number("plus", over(line_layer(1, 0, 1))),
          number("minus", over(line_layer(-1, 0, -1))),
          number("flat", over(line_layer(0, kMean, 1))),
          number("half", over(line_layer(0.5, 0, 1)))};
}

// Entries of U and V in Layer::parameters, behind those of W.
Vector without_residual(const Layer& layer) {
  return layer.parameters().tail(layer.parameters().size() - layer.W.size());
}

std::vector<OptimaRow> saddle() {
  const Layer zero = line_layer(0, 0, 0);
  const LayerRiskFunction risk = layer_risk_function(line_task(), zero, Length::infinity(), {});
  const auto gradient = [&](const Vector& at) {
    Vector all = Vector::Zero(zero.W.size() + at.size());
    all.tail(at.size()) = at;
    Layer g = zero.zero();
    (void)risk(zero.with(all), &g);
    return without_residual(g);
  };
  const Vector origin = without_residual(zero);
  const Index n = origin.size();
  constexpr double h = 1e-4;
  Matrix hessian(n, n);
  for (Index i = 0; i < n; ++i) {
    const Vector e = h * Vector::Unit(n, i);
    hessian.row(i) = (gradient(e) - gradient(-e)).transpose() / (2 * h);
  }
  const Matrix C = (Matrix(2, 2) << 1 + kMean * kMean, kMean, kMean, 1).finished();
  return {number("saddle", -eigensystem(0.5 * (hessian + hessian.transpose())).values(0)),
          number("saddle_norm", gradient(origin).norm()),
          number("saddle_expected", kMean * eigensystem(C).values(1))};
}

// The flow of (u, v) in U = [[u, 0], [0, 0]], V = (0, v), from u = v = start.
std::vector<OptimaRow> flow_from(double start, double end, int points) {
  const ContextTask task = line_task();
  const double bayes = reference_risks(task, Length::infinity(), {}).bayes.value;
  const LayerRiskFunction risk =
      layer_risk_function(task, line_layer(0, 0, 0), Length::infinity(), {});
  RungeKutta flow(
      [&](const VectorView& y, Eigen::Ref<Vector> out) {
        Layer g = line_layer(0, 0, 0);
        (void)risk(line_layer(y(0), 0, y(1)), &g);
        out << -g.heads[0].U(0, 0), -g.heads[0].V(0, 1);
      },
      Vector::Constant(2, start), 1e-10, 1e-12);
  std::vector<OptimaRow> rows;
  for (int i = 0; i <= points; ++i) {
    const double share = static_cast<double>(i) / points, t = end * share * share;
    while (flow.t() < t && flow.step(t)) {
    }
    const double excess = risk(line_layer(flow.y()(0), 0, flow.y()(1)), nullptr) - bayes;
    rows.push_back({.kind = OptimaKind::flow, .value = excess, .start = start, .t = t});
  }
  return rows;
}

// Layers that commute with the reflection of the second coordinate of x.
Layer reflected_mean(const Layer& layer) {
  const Vector R = (Vector(3) << 1, -1, 1).finished();
  Layer out = layer;
  LayerHead& head = out.heads[0];
  head.U = 0.5 * (head.U + Matrix(R.asDiagonal() * head.U * R.asDiagonal()));
  head.V = 0.5 * (head.V + Matrix(head.V * R.asDiagonal()));
  out.W = 0.5 * (out.W + Matrix(out.W * R.asDiagonal()));
  return out;
}

// The share of the gradient outside such layers, at one of them.
double leak(const Options& options, const Matrix& G) {
  const ContextTask task = two_classes((Vector(2) << kMean, 0).finished(), G);
  const Stream s = Stream(options.seed).split(47);
  const Layer at = reflected_mean({.W = Matrix::Zero(1, 3),
                                   .heads = {{.U = random_matrix(s.split(1), 3, 3, 0.5),
                                              .V = random_matrix(s.split(2), 1, 3, 0.5)}}});
  Layer g = at.zero();
  (void)layer_risk_function(task, at, Length::infinity(), {})(at, &g);
  const Vector all = without_residual(g);
  return (all - without_residual(reflected_mean(g))).norm() / all.norm();
}

std::vector<OptimaRow> symmetry(const Options& options) {
  const Matrix skew = (Matrix(2, 2) << 1, 0.5, 0.5, 1).finished();
  return {number("leak", leak(options, Matrix::Identity(2, 2))),
          number("leak_skew", leak(options, skew))};
}

// K K' - Q Q' at the end of a descent in K, Q and V with U = K'Q, along that at its start, over it.
double conserved(const Options& options, bool flow) {
  const Layer zero = line_layer(0, 0, 0);
  const LayerRiskFunction risk = layer_risk_function(line_task(), zero, Length::infinity(), {});
  const auto matrix = [](const VectorView& y, Index first) {
    return Matrix(Eigen::Map<const Matrix>(y.data() + first, 2, 2));
  };
  const auto slope = [&](const VectorView& y, Eigen::Ref<Vector> out) {
    const Matrix K = matrix(y, 0), Q = matrix(y, 4);
    Layer at = zero, g = zero.zero();
    at.heads[0].U = K.transpose() * Q;
    at.heads[0].V = y.tail(2).transpose();
    (void)risk(at, &g);
    const Matrix dU = g.heads[0].U, dK = Q * dU.transpose(), dQ = K * dU;
    out.head(4) = -Eigen::Map<const Vector>(dK.data(), 4);
    out.segment(4, 4) = -Eigen::Map<const Vector>(dQ.data(), 4);
    out.tail(2) = -g.heads[0].V.transpose();
  };
  const auto difference = [&](const Vector& y) {
    const Matrix K = matrix(y, 0), Q = matrix(y, 4);
    return Matrix(K * K.transpose() - Q * Q.transpose());
  };
  Vector y = random_matrix(Stream(options.seed).split(48), 10, 1, 0.7);
  const Matrix before = difference(y);
  constexpr double kEnd = 20;
  if (flow) {
    RungeKutta solver(slope, y, 1e-9, 1e-11);
    while (solver.t() < kEnd && solver.step(kEnd)) {
    }
    y = solver.y();
  } else {
    Vector step(10);
    for (double t = 0; t < kEnd; t += 0.5) {
      slope(y, step);
      y += 0.5 * step;
    }
  }
  return (before.cwiseProduct(difference(y))).sum() / before.squaredNorm();
}

constexpr double kStarts[] = {0.1, 1e-3, 1e-6};
constexpr double kEnd = 400;
constexpr double kDrawn = 60;  // the flows differ before

Cells<OptimaRow> cells(const Options& options) {
  CellList<OptimaRow> list;
  list.add("two-classes/optima", optima);
  list.add("two-classes/saddle", saddle);
  list.add("two-classes/symmetry", [options] { return symmetry(options); });
  list.add("two-classes/conserved", [options] {
    return std::vector<OptimaRow>{number("conserved", conserved(options, true)),
                                  number("conserved_steps", conserved(options, false))};
  });
  for (const double start : kStarts) {
    list.add("two-classes/flow/" + brief(start), [start, points = options.pick(60, 120, 240)] {
      return flow_from(start, kEnd, points);
    });
  }
  return std::move(list).cells();
}

// ---- numbers

// -(log y)' between the first point where the excess is below `high` and the last above `low`.
double rate_between(std::span<const OptimaRow> rows, double high, double low) {
  const OptimaRow *first = nullptr, *last = nullptr;
  for (const OptimaRow& row : rows) {
    if (row.kind != OptimaKind::flow || row.start != kStarts[0]) continue;
    if (row.value > high || row.value < low) continue;
    if (first == nullptr) first = &row;
    last = &row;
  }
  if (first == last) return std::nan("");
  return -std::log(last->value / first->value) / (last->t.value() - first->t.value());
}

ClassificationNumbers numbers_of(std::span<const OptimaRow> rows) {
  const auto of = [&](std::string_view what) {
    for (const OptimaRow& row : rows) {
      if (row.what == what) return row;
    }
    return OptimaRow{.value = std::nan("")};
  };
  return {.bayes = of("bayes").value,
          .bayes_error = of("bayes").value_error,
          .plus = of("plus").value,
          .minus = of("minus").value,
          .flat = of("flat").value,
          .half = of("half").value,
          .saddle = of("saddle").value,
          .saddle_norm = of("saddle_norm").value,
          .saddle_expected = of("saddle_expected").value,
          .rate = rate_between(rows, 1e-6, 1e-10),
          .rate_expected = 2 * independent("classification rate", 0, 0).value,
          .early_rate = rate_between(rows, 1, 0.1),
          .leak = of("leak").value,
          .leak_skew = of("leak_skew").value,
          .conserved = of("conserved").value,
          .conserved_steps = of("conserved_steps").value};
}

}  // namespace

// ---- verdict

Checks classification_checks(const ClassificationNumbers& n) {
  Checks out;
  const auto near_one = [](const char* what, double value, double tolerance) {
    return Judged{.what = what, .value = value, .expected = 1, .tolerance = tolerance};
  };
  Judged rate{.what = "the rate at which the excess falls near the optimum",
              .value = n.rate,
              .expected = n.rate_expected,
              .source = Source::independent,
              .tolerance = kRateError};
  out.figures = {
      against_independent("the least risk", n.bayes, n.bayes_error, 1e-6,
                          independent("classification bayes", 0, 0)),
      near_one("the risk at (U, V) over the least one", n.plus, kOptimumError),
      near_one("the risk at (−U, −V) over the least one", n.minus, kOptimumError),
      near_one("the risk at another member of the family over the least one", n.flat,
               kOptimumError),
      {.what = "minus the smallest curvature at zero",
       .value = n.saddle,
       .expected = n.saddle_expected,
       .tolerance = kSaddleError},
      rate,
      near_one("1 + the share of a gradient outside symmetric layers", 1 + n.leak, kLeakError),
      near_one("KKᵀ − QQᵀ after the flow over that before", n.conserved, kConservedError)};
  out.conditions = {{"the gradient at zero is not zero", n.saddle_norm < 1e-12}};
  rate.what = "the same rate far from the optimum";
  rate.value = n.early_rate;
  out.controls = {
      near_one("the risk at (U/2, V) over the least one", n.half, kOptimumError), rate,
      near_one("1 + that share for classes without the symmetry", 1 + n.leak_skew, kLeakError),
      near_one("KKᵀ − QQᵀ after long gradient steps over that before", n.conserved_steps,
               kConservedError)};
  return out;
}

Verdict judge_classification(const ClassificationNumbers& n) {
  return verdict_of(classification_checks(n), VerdictStatus::holds,
                    "Both families reach the least risk " + brief(n.bayes) +
                        ". Zero is a strict saddle with smallest curvature −" + brief(n.saddle) +
                        ". Near an optimum the excess falls like e^{−" + brief(n.rate) + " t}.");
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  return {
      math(id("out") + op("=") + id("v") + "<mspace width=\"0.17em\"/>" + fn("tanh") +
           paren(paren(sub(id("u"), num("1")) + id("m") + op("+") + sub(id("u"), num("2"))) +
                 id("x")) +
           and_also() + text("Bayes:") + fn("tanh") + paren(id("m") + id("x"))),
      math(frac(id("d"), id("dt")) +
           paren(id("K") + sup(id("K"), op("⊤")) + op("−") + id("Q") + sup(id("Q"), op("⊤"))) +
           op("=") + num("0") + text("for") + id("U") + op("=") + sup(id("K"), op("⊤")) + id("Q"))};
}

SectionReport report(const Options&, std::span<const OptimaRow> rows) {
  const ClassificationNumbers n = numbers_of(rows);
  Sheet flows{.columns = {"start", "t", "excess"}, .rows = {}};
  for (const OptimaRow& row : rows) {
    if (row.kind == OptimaKind::flow && row.t.value() <= kDrawn) {
      flows.add("u = " + brief(row.start.value()), row.t, row.value);
    }
  }
  Section section;
  section.statement =
      "Two Gaussian classes with opposite means are learned from prompts (x, y) by one softmax "
      "head "
      "without residual. On the infinite prompt the least risk is reached on two families of "
      "layers, "
      "(U, V) and (−U, −V); zero is a strict saddle, which gradient flow leaves; near an optimum "
      "the "
      "excess risk falls exponentially, at twice the smallest curvature there. Layers that share a "
      "symmetry of the classes form an invariant subspace, and with U = KᵀQ the matrix KKᵀ − QQᵀ "
      "is "
      "conserved.";
  section.verdict = judge_classification(n);
  section.text =
      "Risks and gradients are integrals over queries to rounding error. Curvatures at zero are "
      "differences of gradients; the rate is read off a flow between excesses of 1e-6 and 1e-10 "
      "and "
      "compared with the Hessian of the closed form, by NumPy. The family that flows is U = [[u, "
      "0], "
      "[0, 0]], V = (0, v). The symmetry is the reflection of a coordinate on which the classes "
      "agree; "
      "a covariance that is not aligned with the means breaks it.";
  section.formulas = formulas();
  section.figures = {
      {.id = "flows",
       .chart = CurveChart{.data = "classification_flows",
                           .x = {.column = "t", .title = "time t"},
                           .y = {.column = "excess", .title = "excess risk", .log = true},
                           .series = "start",
                           .points = false},
       .caption = "Excess risk along gradient flows from u = v, ever closer to the saddle at zero.",
       .read = true}};
  section.tables = {judged_table(classification_checks(n))};
  return {
      .section = std::move(section),
      .datasets = {{"classification_flows", std::move(flows)}},
      .hypotheses = {{.text =
                          "Classes N(1, 1) and N(−1, 1) of equal weight; the symmetry is tested "
                          "in dimension two.",
                      .values = {{"m", kMean}}}},
      .checks = classification_checks(n)};
}

}  // namespace

Statement classification_optima() {
  return make_statement<OptimaRow>(
      "two-classes", "Classification: two families of optima and a strict saddle", cells, report);
}

}  // namespace esscher::paper
