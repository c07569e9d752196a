// Concentration of your own tokens: how far from its limit is a prompt of length L drawn from them?
// The law is the empirical measure of 2000 tokens; here they are points of a noisy circle.
#include <esscher/concentration/constant.h>
#include <esscher/esscher.h>
#include <esscher/prompt/errors.h>

#include <cstdio>

int main() {
  using namespace esscher;
  const Matrix I = Matrix::Identity(2, 2);
  const Sum circle({Sphere(2, 1.0), Gaussian(0.05 * I)});
  const AnyMeasure tokens = circle.sample(Stream(1), 2000);
  const Attention head = Attention::from_uv(2.0 * I, I);
  const Vector z = Vector::Ones(2);

  const double constant = asymptotic_constant(Metric::output, tokens, head, z);
  std::printf("L      E|T_hat - T|^2          constant / L\n");
  for (const std::int64_t L : {10, 40, 160, 640}) {
    const Estimate e = mean_square_error(Metric::output, tokens, head, z, L,
                                         {.replicates = 400, .stream = Stream(2)});
    std::printf("%-5ld  %.5f +- %.5f (%s)  %.5f\n", static_cast<long>(L), e.value, e.std_error,
                std::string(name(e.engine)).c_str(), constant / static_cast<double>(L));
  }
}
