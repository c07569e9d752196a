// The pair (H, g(H)) of an index H ~ N(0, rho^2) and its link g, a law on R^2. For a tilt
// a = (eta, beta), with h = rho^2 eta,
//
//   Lambda(a) = rho^2 eta^2/2 + log E e^{beta g(h + rho v)},   v ~ N(0,1)
//   m_a, C_a  = mean and covariance of (h + rho v, g(h + rho v)) under the density ~ e^{psi(v)},
//   psi(v)    = -v^2/2 + beta (g(h + rho v) - g(h))
//
// The tilted law is represented by nodes v_i with weights r_i: Gauss-Legendre panels, split at the
// kinks of g and halved until the integrals of 1, v and v^2 agree to 1e-14 (or to what rounding of
// beta g leaves). Panels are laid around v = 0 and around H = 0 on all scales up to where e^psi is
// below 1e-19 of its maximum, so that large tilts are served as well. A polynomial of degree two is
// a shifted and rescaled Gaussian and needs 2 beta c2 rho^2 < 1 (DomainError otherwise). Tilts with
// rho |eta| <= 1/2 and |beta| sd(g) <= 1/10 reweight the nodes of a = 0, which keeps the relative
// accuracy of tiny tilts (discrete_tilt.h).
#pragma once

#include "esscher/measure/link.h"
#include "esscher/measure/measure.h"

namespace esscher {

class LinkPair {
 public:
  // rho > 0.
  LinkPair(double rho, Link link);

  [[nodiscard]] double rho() const { return rho_; }
  [[nodiscard]] const Link& link() const { return link_; }

  // The tilted law at its nodes: m_a + deviations [n,2], weights [n] with sum 1.
  struct Nodes {
    Matrix deviations;
    Vector weights;
    double centred_log_mgf = 0;
    Vector shift;  // m_a - mean [2]
  };
  [[nodiscard]] Nodes nodes(const VectorView& a) const;

  [[nodiscard]] Index dim() const { return 2; }
  [[nodiscard]] Length cardinality() const { return Length::infinity(); }
  [[nodiscard]] Vector mean() const { return Vector{{0.0, mean_}}; }
  [[nodiscard]] Matrix second_moment() const { return second_moment_; }
  [[nodiscard]] double log_mgf(const VectorView& a) const;
  [[nodiscard]] double centred_log_mgf(const VectorView& a) const;
  [[nodiscard]] Vector tilted_mean(const VectorView& a) const;
  [[nodiscard]] Vector mean_shift(const VectorView& a) const;
  [[nodiscard]] Matrix tilted_cov(const VectorView& a) const;
  [[nodiscard]] Vector tilted_cov_times(const VectorView& a, const VectorView& v) const;
  [[nodiscard]] HigherCumulants higher_cumulants(const VectorView& a, const MatrixView& W,
                                                 const MatrixView& Y) const;
  // H of token l is rho times normal l of the stream.
  [[nodiscard]] Empirical sample(const Stream& stream, Index n) const;
  [[nodiscard]] double sub_gaussian() const;  // infinite if g is of degree two
  [[nodiscard]] std::string name() const { return "link pair"; }

 private:
  [[nodiscard]] Nodes reweighted(double c, double beta) const;
  [[nodiscard]] Nodes gaussian(double c, double beta) const;
  [[nodiscard]] Nodes adaptive(double c, double beta) const;
  [[nodiscard]] Nodes far(double c, double beta, double f) const;
  // Fills deviations and the shift of nodes at H = centre + steps [n], whose weights are there.
  void place(double centre, const Vector& steps, Nodes& nodes) const;

  double rho_;
  Link link_;
  Vector base_;                      // nodes of v at a = 0
  Vector base_weights_;              // sum 1
  Vector base_values_;               // g(rho v_i) - mean
  double mean_ = 0, deviation_ = 0;  // of g(H)
  Matrix second_moment_;
};

}  // namespace esscher
