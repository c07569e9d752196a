#include <vector>

#include "esscher/risk/detail/prompt_sums.h"

namespace esscher::detail {
namespace {

// E[zz'(a'z)(b'z)] of the mixture [D,D].
Matrix fourth_moment(const SharedMixture& law, const Vector& a, const Vector& b) {
  const Matrix& S = law.cov;
  const Vector sa = S * a, sb = S * b;
  const double sigma = a.dot(sb);
  Matrix out = Matrix::Zero(law.dim(), law.dim());
  for (Index k = 0; k < law.count(); ++k) {
    const Vector m = law.means.row(k).transpose();
    const double am = a.dot(m), bm = b.dot(m);
    const Vector mixed = bm * sa + am * sb;
    out += law.weights[k] * ((am * bm + sigma) * (m * m.transpose() + S) + mixed * m.transpose() +
                             m * mixed.transpose());
  }
  return out + sa * sb.transpose() + sb * sa.transpose();
}

// E[zz'(z'Az)] of the mixture [D,D], for a symmetric A.
Matrix fourth_form(const SharedMixture& law, const Matrix& A) {
  const Matrix& S = law.cov;
  const Matrix SA = S * A;
  const double trace = SA.trace();
  Matrix out = Matrix::Zero(law.dim(), law.dim());
  for (Index k = 0; k < law.count(); ++k) {
    const Vector m = law.means.row(k).transpose();
    const Vector SAm = SA * m;
    out += law.weights[k] * ((m.dot(A * m) + trace) * (m * m.transpose() + S) +
                             2 * (SAm * m.transpose() + m * SAm.transpose()));
  }
  return out + 2 * SA * S;
}

}  // namespace

double linear_error(const Layer& layer, const SharedMixture& law, std::int64_t L,
                    const VectorView& z, const VectorView& target, Layer* gradient) {
  const std::size_t H = layer.heads.size();
  const double share = 1 / static_cast<double>(L);
  const Matrix M = law.cov + law.means.transpose() * law.weights.asDiagonal() * law.means;  // E zz'
  std::vector<Vector> a;
  Vector mean = Vector::Zero(layer.out_dim());
  for (const LayerHead& head : layer.heads) {
    a.emplace_back(head.U * z);
    mean += head.V * (M * a.back());
  }
  const Vector q = layer.W * z - target, miss = q + mean;
  // J = |miss|^2/2 + share (E|f|^2 - |mean|^2)/2, so dJ/dmean = miss - share mean.
  const Vector slope = miss - share * mean;
  double square = 0;
  if (gradient != nullptr) gradient->W += miss * z.transpose();
  for (std::size_t h = 0; h < H; ++h) {
    const Matrix& V = layer.heads[h].V;
    Matrix by_V = slope * (M * a[h]).transpose();
    Vector by_a = M * (V.transpose() * slope);
    for (std::size_t g = 0; g < H; ++g) {
      const Matrix VK = layer.heads[g].V * fourth_moment(law, a[g], a[h]);  // [m,D]
      square += VK.cwiseProduct(V).sum();
      if (gradient == nullptr) continue;
      const Matrix cross = V.transpose() * layer.heads[g].V;
      by_V += share * VK;
      by_a += share * (fourth_form(law, 0.5 * (cross + cross.transpose())) * a[g]);
    }
    if (gradient == nullptr) continue;
    gradient->heads[h].V += by_V;
    gradient->heads[h].U += by_a * z.transpose();
  }
  return miss.squaredNorm() / 2 + share * (square - mean.squaredNorm()) / 2;
}

}  // namespace esscher::detail
