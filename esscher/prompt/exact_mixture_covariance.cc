#include "esscher/prompt/exact_mixture_covariance.h"

#include <algorithm>

namespace esscher {

namespace {

using Vector3 = Eigen::Vector3d;
using Vector5 = Eigen::Matrix<double, 5, 1>;

// u'Mv as a polynomial in x, for u = u0 + u1 x, v = v0 + v1 x.
Vector3 product(const Vector& u0, const Vector& u1, const Matrix& M, const Vector& v0,
                const Vector& v1) {
  const Vector Mv0 = M * v0, Mv1 = M * v1;
  return {u0.dot(Mv0), u0.dot(Mv1) + u1.dot(Mv0), u1.dot(Mv1)};
}

// |u|^2 + trace.
Vector3 square(const Vector& u0, const Vector& u1, double trace) {
  return {u0.squaredNorm() + trace, 2 * u0.dot(u1), u1.squaredNorm()};
}

// (u0 + u1 x) f(x) + w0 + w1 x  [rows,4].
Matrix cubic(const Vector& u0, const Vector& u1, const Vector3& f, const Vector& w0,
             const Vector& w1) {
  Matrix out = Matrix::Zero(u0.size(), 4);
  out.leftCols(3) += u0 * f.transpose();
  out.rightCols(3) += u1 * f.transpose();
  out.col(0) += w0;
  out.col(1) += w1;
  return out;
}

// The polynomials of one component, read through A and B.
struct Polynomials {
  double weight, tau;
  Vector Ae, Ab, Be, Bb;
  Matrix M0, M1, M2;      // A zeta zeta' B' = M0 + M1 x + M2 x^2
  Vector3 alpha, beta;    // |A zeta|^2, |B zeta|^2
  Vector3 cross;          // <zeta zeta', C>
  Matrix cubicA, cubicB;  // A zeta |B zeta|^2, B zeta |A zeta|^2
  Vector5 quartic;        // |A zeta|^2 |B zeta|^2

  Polynomials(const TokenPart& part, const Matrix& A, const Matrix& B, const Matrix& ACB)
      : weight(part.weight),
        tau(part.tau),
        Ae(A * part.e),
        Ab(A * part.b),
        Be(B * part.e),
        Bb(B * part.b) {
    const Matrix AR = A * part.R, ARB = AR * B.transpose();
    const double trA = std::max(0.0, AR.cwiseProduct(A).sum());
    const double trB = std::max(0.0, (B * part.R).cwiseProduct(B).sum());
    M0 = Ae * Be.transpose() + ARB;
    M1 = Ae * Bb.transpose() + Ab * Be.transpose();
    M2 = Ab * Bb.transpose();
    alpha = square(Ae, Ab, trA);
    beta = square(Be, Bb, trB);
    cross = product(Ae, Ab, ACB, Be, Bb);
    cross[0] += ACB.cwiseProduct(ARB).sum();
    cubicA = cubic(Ae, Ab, beta, 2 * ARB * Be, 2 * ARB * Bb);
    cubicB = cubic(Be, Bb, alpha, 2 * ARB.transpose() * Ae, 2 * ARB.transpose() * Ab);
    quartic.setZero();
    for (int i = 0; i < 3; ++i) quartic.segment<3>(i) += alpha[i] * beta;
    quartic.head<3>() += 4 * product(Ae, Ab, ARB, Be, Bb);
    quartic[0] += 2 * ARB.squaredNorm();
  }
};

// F_k of the factors, summed over components, at one node.
struct Factors {
  Vector yA, yB;    // F_1[zeta]
  Matrix X1;        // F_1[Xi]
  double one2 = 0;  // F_2[1]
  Vector zA2, zB2;  // F_2[zeta]
  Matrix S2;        // F_2[zeta zeta']
  double alpha2 = 0, beta2 = 0, cross2 = 0, cross3 = 0;
  Vector cubicA2, cubicB2, cubicA3, cubicB3;
  double quartic2 = 0, quartic3 = 0, quartic4 = 0;

  Factors(Index p, Index r)
      : yA(Vector::Zero(p)),
        yB(Vector::Zero(r)),
        X1(Matrix::Zero(p, r)),
        zA2(yA),
        zB2(yB),
        S2(X1),
        cubicA2(yA),
        cubicB2(yB),
        cubicA3(yA),
        cubicB3(yB) {}

  // Adds to F_1. With x = g - tau, partial integration gives G_11 = -tau G_20 and
  // G_12 - G_10 = tau^2 (G_30 - G_20). The remaining terms are centred under the tilted law, so
  // their G_10 may be replaced by G_10 - E[y] = -excess.
  void add_first(const Polynomials& f, const MixtureNodes::Moments& m, bool small,
                 const Matrix& ACB) {
    const auto& G = m.G;
    const double first = small ? -m.excess : G(1, 0), slope = -f.tau * G(2, 0);
    const double bend = f.tau * f.tau * (G(3, 0) - G(2, 0));
    const double p = f.weight;
    yA += p * (first * f.Ae + slope * f.Ab);
    yB += p * (first * f.Be + slope * f.Bb);
    X1 += p * (first * (f.M0 + f.M2 - ACB) + slope * f.M1 + bend * f.M2);
  }

  void add_higher(const Polynomials& f, const TokenMoments::Table& G) {
    const double p = f.weight;
    one2 += p * G(2, 0);
    zA2 += p * (G(2, 0) * f.Ae + G(2, 1) * f.Ab);
    zB2 += p * (G(2, 0) * f.Be + G(2, 1) * f.Bb);
    S2 += p * (G(2, 0) * f.M0 + G(2, 1) * f.M1 + G(2, 2) * f.M2);
    const Vector5 G2 = p * G.row(2), G3 = p * G.row(3), G4 = p * G.row(4);
    alpha2 += f.alpha.dot(G2.head<3>());
    beta2 += f.beta.dot(G2.head<3>());
    cross2 += f.cross.dot(G2.head<3>());
    cross3 += f.cross.dot(G3.head<3>());
    cubicA2 += f.cubicA * G2.head<4>();
    cubicB2 += f.cubicB * G2.head<4>();
    cubicA3 += f.cubicA * G3.head<4>();
    cubicB3 += f.cubicB * G3.head<4>();
    quartic2 += f.quartic.dot(G2);
    quartic3 += f.quartic.dot(G3);
    quartic4 += f.quartic.dot(G4);
  }

  // The sum over set partitions. w[p] is the weight of p blocks, 1/(n-1)! that of n factors.
  [[nodiscard]] double square(const double* w, const Matrix& ACB) const {
    const double XX =
        w[1] * (quartic2 - 2 * cross2 + ACB.squaredNorm() * one2) + w[2] * X1.squaredNorm();
    const double XYY = w[1] * (quartic3 - cross3) +
                       w[2] * (yB.dot(cubicB2) - zA2.dot(ACB * yB) + yA.dot(cubicA2) -
                               yA.dot(ACB * zB2) + X1.cwiseProduct(S2).sum()) +
                       w[3] * yA.dot(X1 * yB);
    const double yA2 = yA.squaredNorm(), yB2 = yB.squaredNorm();
    const double YYYY =
        w[1] * quartic4 +
        w[2] * (2 * yA.dot(cubicA3) + 2 * yB.dot(cubicB3) + alpha2 * beta2 + 2 * S2.squaredNorm()) +
        w[3] * (alpha2 * yB2 + beta2 * yA2 + 4 * yA.dot(S2 * yB)) + w[4] * yA2 * yB2;
    return XX - 2 * XYY / 2 + YYYY / 6;
  }
};

}  // namespace

ErrorParts covariance_error(MixtureNodes& nodes, const std::vector<TokenPart>& parts,
                            const Matrix& C, const Matrix& A, const Matrix& B, std::int64_t L) {
  const Matrix ACB = A * C * B.transpose();
  std::vector<Polynomials> polynomials;
  for (const TokenPart& part : parts) polynomials.emplace_back(part, A, B, ACB);
  double total = 0;
  Matrix bias = Matrix::Zero(A.rows(), B.rows());
  nodes.sweep(L, [&](const MixtureNodes::Node& node, const Survival& survival, double du) {
    Factors f(A.rows(), B.rows());
    for (std::size_t k = 0; k < polynomials.size(); ++k) {
      f.add_first(polynomials[k], node.moments[k], node.small, ACB);
      f.add_higher(polynomials[k], node.moments[k].G);
    }
    const double* w = survival.power;
    total += du * f.square(w, ACB);
    bias += du * (w[1] * (f.X1 - f.S2) - w[2] * f.yA * f.yB.transpose());
  });
  const double bias2 = bias.squaredNorm();
  return {bias2, std::max(0.0, total - bias2)};
}

}  // namespace esscher
