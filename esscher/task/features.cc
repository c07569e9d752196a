#include "esscher/task/features.h"

#include <cmath>

namespace esscher {

Matrix draw_features(Features features, Index d, const Stream& stream, Index first, Index n) {
  Matrix xi(n, d);
  const auto start = static_cast<std::uint64_t>(first * d);
  const std::span<double> out(xi.data(), static_cast<std::size_t>(xi.size()));
  switch (features) {
    case Features::gaussian: stream.fill_normal(start, out); break;
    case Features::rademacher:
      stream.fill_uniform(start, out);  // the top bit of a draw is its sign, as in rademacher()
      for (double& x : out) x = x > 0.5 ? 1.0 : -1.0;
      break;
    case Features::uniform:
      stream.fill_uniform(start, out);
      xi.array() = (2 * xi.array() - 1) * std::sqrt(3.0);
      break;
    case Features::sphere:
      stream.fill_normal(start, out);
      for (Index i = 0; i < n; ++i)
        xi.row(i) *= std::sqrt(static_cast<double>(d)) / xi.row(i).norm();
      break;
  }
  return xi;
}

RegressionSampler::RegressionSampler(const LinearRegressionTask& t)
    : task(t),
      F(psd_sqrt("task", "prompt_cov", t.prompt_cov)),
      Fq(psd_sqrt("task", "query_cov", t.query_cov)) {}

RegressionDraw RegressionSampler::draw(const Stream& stream) const {
  const Index d = task.dim;
  RegressionDraw out;
  out.w.resize(d);
  stream.split(0).fill_normal(0, {out.w.data(), static_cast<std::size_t>(d)});
  out.w *= std::sqrt(task.task_variance);
  out.x = Fq * draw_features(task.features, d, stream.split(1), 0, 1).row(0).transpose();
  out.y = out.w.dot(out.x);
  if (task.query_noise) out.y += std::sqrt(task.noise_variance) * stream.split(2).normal(0);
  return out;
}

Matrix RegressionSampler::prompt(const VectorView& w, Index L, const Stream& stream) const {
  const Index d = task.dim;
  Matrix z(L, d + 1);
  z.leftCols(d).noalias() = draw_features(task.features, d, stream.split(0), 0, L) * F;
  z.col(d).noalias() = z.leftCols(d) * w;
  if (task.noise_variance > 0) {
    Vector noise(L);
    stream.split(1).fill_normal(0, {noise.data(), static_cast<std::size_t>(L)});
    z.col(d) += std::sqrt(task.noise_variance) * noise;
  }
  return z;
}

}  // namespace esscher
