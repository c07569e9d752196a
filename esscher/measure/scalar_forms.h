// Closed forms of one coordinate. Each is accurate to a few ulp for every finite a and does not
// overflow. For small |a| they use series with terms of one sign; for large |a| they take the
// factor e^{|a|} out first.
#pragma once

namespace esscher {

// Rademacher: log cosh a = |a| + log1p(e^{-2|a|}) - log 2 = log1p(2 sinh^2(a/2)), and sech^2 a.
double log_cosh(double a);
double sech_squared(double a);

// Uniform[-1,1]: log(sinh a / a), its derivative coth a - 1/a (Langevin), and second derivative
// 1/a^2 - 1/sinh^2 a.
double log_sinhc(double a);
double langevin(double a);
double langevin_derivative(double a);

}  // namespace esscher
