// What a stranger's program looks like: the infinite-prompt limit of a Gaussian is linear in z.
#include <esscher/esscher.h>

#include <iostream>

int main() {
  using namespace esscher;
  const Gaussian mu(Vector::Constant(2, 1.0), 2.0 * Matrix::Identity(2, 2));
  const Attention attention = Attention::from_uv(Matrix::Identity(2, 2), Matrix::Identity(2, 2));
  const Vector z = Vector::Constant(2, 0.5);
  const Vector T = attention(mu, z);  // m + G z = 1 + 2 * 0.5
  std::cout << T.transpose() << "\n";
  return (T - Vector::Constant(2, 2.0)).norm() < 1e-14 ? 0 : 1;
}
