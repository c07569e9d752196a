// Tilt of a measure: what a query sees. Two clouds of tokens; as the query grows, attention moves
// from their common mean to the cloud it points at.
#include <esscher/esscher.h>

#include <cstdio>

int main() {
  using namespace esscher;
  const Matrix I = Matrix::Identity(2, 2);
  const Vector left = Vector::Unit(2, 0) * -1.0, right = Vector::Unit(2, 0);
  const Mixture clouds(Vector::Ones(2), {Gaussian(left, 0.1 * I), Gaussian(right, 0.1 * I)});
  const Attention head = Attention::from_uv(I, I);

  std::printf("query  output under the measure  output on 1000 tokens\n");
  const Empirical prompt = clouds.sample(Stream(1), 1000);
  for (const double size : {0.0, 0.5, 1.0, 2.0, 4.0}) {
    const Vector z = size * Vector::Unit(2, 0);
    std::printf("%5.1f  %24.4f  %21.4f\n", size, head(clouds, z)(0), head(prompt, z)(0));
  }
}
