#include "esscher/concentration/gaussian_average.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/universal/universal.h"

namespace esscher {
namespace {

Matrix score_form(const GaussianLaw& mu, const Attention& attention) {
  check_dimension("GaussianAverage", "measure", mu.mean.size(), attention.dim());
  return attention.U().transpose() * mu.cov * attention.U();
}

GaussianAverage::Functions exact_functions(std::int64_t L, bool order4) {
  return {.L = L, .at = [=](double tau) { return universal_up_to(order4, L, tau); }};
}

}  // namespace

GaussianAverage::GaussianAverage(std::vector<Metric> metrics, const GaussianLaw& mu,
                                 const Attention& attention, const GaussianLaw& nu)
    : mu_(mu),
      query_mean_(nu.mean),
      metrics_(std::move(metrics)),
      law_(score_form(mu, attention), nu.mean, nu.cov) {
  const Index d = attention.dim();
  for (Metric metric : metrics_) {
    const MetricForm form = metric_form(metric, attention);
    const Matrix W = form.left.gram(d);
    if (form.of_covariance) {
      add_quadratic(W, form.right.scale2 * form.right.gram(d),
                    form.query->scale2 * form.query->gram(d), attention);
    } else {
      add_linear(W, attention, form.left.scale2);
    }
  }
  products_.push_back({});  // last column: E_z f(tau), for the effective sample size
  rule_ = law_.rule(forms_, products_);
}

void GaussianAverage::add_linear(const Matrix& W, const Attention& attention, double factor) {
  const Matrix GU = mu_.cov * attention.U();
  Terms t;
  t.factor = factor;
  t.trWG = (W * mu_.cov).trace();
  t.first = static_cast<int>(products_.size());
  t.limit_constant = mu_.mean.dot(W * mu_.mean);
  t.limit_linear = 2 * GU.transpose() * (W * mu_.mean);
  const int form = static_cast<int>(forms_.size());
  forms_.push_back(GU.transpose() * W * GU);
  products_.push_back({});
  products_.push_back({form});
  terms_.push_back(t);
}

void GaussianAverage::add_quadratic(const Matrix& W, const Matrix& Y, const Matrix& N,
                                    const Attention& attention) {
  const Matrix& G = mu_.cov;
  const Matrix GU = G * attention.U();
  const Matrix YGW = Y * G * W;
  Terms t;
  t.quadratic = true;
  t.trWG = (W * G).trace();
  t.trYG = (Y * G).trace();
  t.trWGYG = (W * G * Y * G).trace();
  t.first = static_cast<int>(products_.size());
  t.limit_linear = Vector::Zero(attention.dim());
  const int f = static_cast<int>(forms_.size());  // N, w, n, k
  forms_.push_back(N);
  forms_.push_back(GU.transpose() * W * GU);
  forms_.push_back(GU.transpose() * Y * GU);
  forms_.push_back(GU.transpose() * (0.5 * (YGW + YGW.transpose())) * GU);
  for (FormProduct p : {FormProduct{f}, {f, f + 1}, {f, f + 2}, {f, f + 3}, {f, f + 1, f + 2}}) {
    products_.push_back(std::move(p));
  }
  terms_.push_back(t);
  needs4_ = true;
}

Index GaussianAverage::nodes_above(double share, std::int64_t L) const {
  const Vector size = TauLaw::relative_size(rule_.weights);
  const double floor = size.maxCoeff() * share / static_cast<double>(L);
  Index n = size.size();
  while (n > 1 && size[n - 1] < floor) --n;
  return n;
}

// D(L) is at least of order 1/L, and no error is larger than a power of tau. Nodes beyond this one
// therefore do not change the first fourteen digits.
Index GaussianAverage::used_nodes(std::int64_t L) const { return nodes_above(1e-17, L); }

double GaussianAverage::largest_tau(std::int64_t L) const {
  return rule_.tau[nodes_above(1e-12, L) - 1];
}

std::vector<AverageError> GaussianAverage::at(std::int64_t L) const {
  return at(exact_functions(L, needs4_));
}

// Beyond tau_max the universal functions keep their value there. This is only used to see whether
// such queries matter.
std::vector<AverageError> GaussianAverage::at(const Functions& functions) const {
  const Index n = used_nodes(functions.L);
  std::vector<Universal4> u(static_cast<std::size_t>(n));
  parallel_for(n, [&](std::int64_t k) {
    u[static_cast<std::size_t>(k)] = functions.at(std::min(rule_.tau[k], functions.tau_max));
  });
  std::vector<AverageError> result;
  for (const Terms& t : terms_) {
    AverageError e;
    double beyond = 0;
    for (Index k = 0; k < n; ++k) {
      const Universal4& f = u[static_cast<std::size_t>(k)];
      const auto p = rule_.weights.row(k).segment(t.first, t.quadratic ? 5 : 2);
      const double t2 = std::max(rule_.tau[k] * rule_.tau[k], 1e-300);
      const double H = f.H;
      double value = 0, bias = 0;
      if (!t.quadratic) {
        value = t.trWG * H * p[0] + (f.M2c_ratio - H) * p[1] / t2;
        bias = H * H * p[1];
      } else {
        const double Nw = p[1] / t2, Nn = p[2] / t2, Nk = p[3] / t2, Nwn = p[4] / (t2 * t2);
        value = (f.n2 * (t.trWG * t.trYG + t.trWGYG) + f.h2 * t.trWGYG) * p[0] +
                (f.q_ratio - f.n2) * (t.trYG * Nw + t.trWG * Nn) +
                2 * (f.q_ratio - f.vh_ratio - f.h2 - f.n2) * Nk +
                (f.v2_ratio - 4 * f.q_ratio + 2 * f.vh_ratio + f.h2 + 2 * f.n2) * Nwn;
        bias = f.v1_ratio * f.v1_ratio * Nwn - 2 * f.v1_ratio * H * (Nk - Nwn) +
               H * H * (t.trWGYG * p[0] - 2 * Nk + Nwn);
      }
      if (rule_.tau[k] > functions.tau_max) beyond += std::abs(value);
      e.value += value;
      e.bias2 += bias;
    }
    if (beyond > 1e-9 * e.value) {
      throw CapabilityError("exact engine: queries with tau > " + to_text(functions.tau_max) +
                            " matter to this average; use the sampled engine, or a smaller U");
    }
    e.value *= t.factor;
    e.bias2 = std::min(e.bias2 * t.factor, e.value);
    e.variance = e.value - e.bias2;
    result.push_back(e);
  }
  return result;
}

double GaussianAverage::effective_sample_size(std::int64_t L) const {
  return effective_sample_size(exact_functions(L, false));
}

double GaussianAverage::effective_sample_size(const Functions& functions) const {
  const Index n = used_nodes(functions.L), last = rule_.weights.cols() - 1;
  Vector H(n);
  parallel_for(
      n, [&](std::int64_t k) { H[k] = functions.at(std::min(rule_.tau[k], functions.tau_max)).H; });
  return 1 / H.dot(rule_.weights.col(last).head(n));
}

double GaussianAverage::constant(std::size_t i) const {
  const Terms& t = terms_.at(i);
  const auto m = [&](int j) {
    const int column = t.first + j;
    return law_.tilted_moment(forms_, products_[static_cast<std::size_t>(column)], 1.0);
  };
  if (2 * law_.lambda() >= 1) return std::numeric_limits<double>::infinity();
  if (!t.quadratic) return t.factor * (t.trWG * m(0) + m(1));
  return (t.trYG * t.trWG + t.trWGYG) * m(0) + t.trYG * m(1) + t.trWG * m(2) + 2 * m(3) + m(4);
}

double GaussianAverage::limit_norm2(std::size_t i) const {
  const Terms& t = terms_.at(i);
  const int j = t.first + (t.quadratic ? 0 : 1);
  const double m = law_.tilted_moment(forms_, products_[static_cast<std::size_t>(j)], 0);
  if (t.quadratic) return t.trWGYG * m;
  return t.factor * (t.limit_constant + t.limit_linear.dot(query_mean_) + m);
}

double GaussianAverage::frozen_fraction(std::int64_t L) const {
  return law_.tail(std::log(static_cast<double>(L)));
}

}  // namespace esscher
