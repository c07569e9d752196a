#include "esscher/task/denoising.h"

#include <cmath>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/random/draws.h"
#include "esscher/task/weights.h"

namespace esscher {
namespace {

double total_variance(const DenoisingTask& task) {
  return task.gamma * task.gamma + task.xi * task.xi;
}

std::shared_ptr<const TokenLaw> law_of(const DenoisingTask& task, const Matrix& means) {
  const Index d = means.cols();
  return std::make_shared<const TokenLaw>(
      SharedMixture{task.weights, means, total_variance(task) * Matrix::Identity(d, d)});
}

QueryMoments moments_of(const DenoisingTask& task) {
  const Index d = task.means.cols();
  QueryMoments out;
  out.z = Vector::Zero(d);
  Matrix B = Matrix::Zero(d, d);  // E m m'
  if (task.means.is_fixed()) {
    out.z = task.means.fixed.transpose() * task.weights;
    B = task.means.fixed.transpose() * task.weights.asDiagonal() * task.means.fixed;
  } else {
    B.diagonal().setConstant(task.means.variance());
  }
  const Matrix I = Matrix::Identity(d, d);
  out.t = out.z;
  out.tz = B + task.gamma * task.gamma * I;
  out.zz = B + total_variance(task) * I;
  out.tt = out.tz.trace();
  return out;
}

// x = m_k + gamma n, query x + xi n', target x.
SideBySide side_by_side(const DenoisingTask& task) {
  const Index d = task.means.cols();
  const auto draw = [=](const Stream& stream, Index first, Index n) {
    ComponentDraws drawn = component_draws(task.means, task.weights, 2 * d, stream, first, n);
    const Matrix clean = drawn.centres() + task.gamma * drawn.normals.topRows(d);
    const Matrix noisy = clean + task.xi * drawn.normals.bottomRows(d);
    return SideBySide::Draws{std::move(drawn.means), noisy, clean};
  };
  return {task.weights, std::sqrt(total_variance(task)) * Matrix::Identity(d, d), draw};
}

// log sum_k pi_k N(z; m_k, S I) for each row z of points, summed, up to a constant.
double log_density_of(const Matrix& points, const Matrix& means, const Vector& log_weights,
                      double S) {
  Matrix exponent = points * means.transpose() / S;  // [n,K]
  exponent.rowwise() += (log_weights - means.rowwise().squaredNorm() / (2 * S)).transpose();
  const Vector top = exponent.rowwise().maxCoeff();
  return top.sum() + (exponent.colwise() - top).array().exp().rowwise().sum().log().sum();
}

// The query is a point of the mixture too.
LawEvidence evidence_of(const DenoisingTask& task, const Matrix& prompt, const Vector& query) {
  Matrix points(prompt.rows() + 1, prompt.cols());
  points << prompt, query.transpose();
  const Vector log_weights = task.weights.array().log();
  const double S = total_variance(task);
  return {.log_density =
              [=](const Vector& normals) {
                return log_density_of(points, task.means.at(normals), log_weights, S);
              },
          .mean =
              [=](const Vector& normals) {
                return denoising_posterior(task, task.means.at(normals), query).mean;
              }};
}

// One component with a Gaussian mean: tokens and query are Gaussian around it.
Vector mean_of_one_component(const DenoisingTask& task, const Matrix& prompt, const Vector& query) {
  const double S = total_variance(task), prior = task.means.scale * task.means.scale;
  const auto n = static_cast<double>(prompt.rows() + 1);
  const Vector sum = prompt.colwise().sum().transpose() + query;
  const Vector centre = sum * (prior / (n * prior + S));
  return centre + task.gamma * task.gamma / S * (query - centre);
}

}  // namespace

void DenoisingTask::check() const {
  means.check();
  check_weights("task", weights, means.rows());
  if (!(gamma >= 0)) throw_argument("task", "gamma", to_text(gamma), "a number >= 0");
  if (!(xi >= 0)) throw_argument("task", "xi", to_text(xi), "a number >= 0");
  if (!(gamma + xi > 0)) throw_argument("task", "xi", to_text(xi), "a number > 0 if gamma is 0");
}

DenoisingPosterior denoising_posterior(const DenoisingTask& task, const MatrixView& means,
                                       const VectorView& z) {
  const double S = total_variance(task), g2 = task.gamma * task.gamma;
  const Index K = means.rows(), d = means.cols();
  Vector exponent(K);
  for (Index k = 0; k < K; ++k) {
    exponent[k] =
        std::log(task.weights[k]) - (z.transpose() - means.row(k)).squaredNorm() / (2 * S);
  }
  DenoisingPosterior out;
  out.responsibilities = (exponent.array() - exponent.maxCoeff()).exp();
  out.responsibilities /= out.responsibilities.sum();
  const Vector centre = means.transpose() * out.responsibilities;
  const double keep = task.xi * task.xi / S;  // of the mean; g2/S of the query
  out.mean = keep * centre + (g2 / S) * z;
  out.variance = static_cast<double>(d) * g2 * keep;
  for (Index k = 0; k < K; ++k) {
    out.variance +=
        out.responsibilities[k] * keep * keep * (means.row(k) - centre.transpose()).squaredNorm();
  }
  return out;
}

ContextTask denoising_task(const DenoisingTask& given) {
  DenoisingTask task = given;
  task.weights = equal_unless_given(given.weights, given.means.rows());
  task.check();
  const Index d = task.means.cols(), of_law = task.means.normals();
  ContextTask out;
  out.type = TaskType::denoising;
  out.token_dim = out.out_dim = d;
  out.law_normals = of_law;
  out.query_normals = d;
  out.strata = task.weights;
  out.fixed_law = task.means.is_fixed();
  const auto fixed = out.fixed_law ? law_of(task, task.means.fixed) : nullptr;
  const double deviation = std::sqrt(total_variance(task));
  out.node = [=](const VectorView& normals, Index k) {
    const Matrix means = task.means.at(normals.head(of_law));
    ContextNode node{fixed ? fixed : law_of(task, means), {}, {}};
    node.query = means.row(k).transpose() + deviation * normals.tail(d);
    const DenoisingPosterior posterior = denoising_posterior(task, means, node.query);
    node.target = posterior.mean;
    node.variance = posterior.variance;
    return node;
  };
  out.target = [task, deviation, d](const ContextNode& node, const Stream& stream) {
    const auto law = node.tokens->mixture(Vector::Zero(d));
    const DenoisingPosterior posterior = denoising_posterior(task, law->means, node.query);
    const Index k = CategoricalDraw(posterior.responsibilities)(stream.split(0).uniform(0));
    const double g2 = task.gamma * task.gamma, S = deviation * deviation;
    const Vector m = law->means.row(k).transpose();
    Vector noise(d);
    stream.split(1).fill_normal(0, {noise.data(), static_cast<std::size_t>(d)});
    return Vector(m + (g2 / S) * (node.query - m) + task.gamma * task.xi / deviation * noise);
  };
  out.moments = [moments = moments_of(task)](const Stream&) { return moments; };
  out.side_by_side = side_by_side(task);
  if (out.fixed_law) return out;
  if (task.means.count == 1 && task.means.law == MeansLaw::gaussian) {
    out.posterior_mean = [task](const Matrix& prompt, const Vector& query) {
      return mean_of_one_component(task, prompt, query);
    };
    return out;
  }
  out.posterior_by = PosteriorBy::chains;
  out.evidence = [task](const Matrix& prompt, const Vector& query) {
    return evidence_of(task, prompt, query);
  };
  return out;
}

}  // namespace esscher
