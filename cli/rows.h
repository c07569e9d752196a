// One row of `limit` and `attend`: everything about one query z under one measure.
#pragma once

#include <string>

#include "esscher/attention/attention.h"
#include "esscher/config/measure.h"
#include "esscher/json/json.h"
#include "esscher/measure/any_measure.h"

namespace esscher::cli {

struct RowOptions {
  bool linear = false;       // [attention] kind: which operator "output" is
  bool derivatives = false;  // add the Jacobians
};

// {"z", "output", "output_linear", "log_mgf", "tau2", "tilted_mean", "tilted_cov"}, where
// tau2 = a'C_0 a is the variance of the score under mu, plus "effective_sample_size" for a prompt
// and "jacobian_z" [dv,d], "jacobian_U" [dv,d*d], "jacobian_V" [dv,dv*d] on request.
Json query_row(const AnyMeasure& mu, const Attention& attention, const VectorView& z,
               const RowOptions& options);

// The points of [query], or `count` draws of its law from `seed`.
Matrix query_points(const Table& root, Index dim, Index count, std::uint64_t seed);

// "[0.5, 1.25, ...]", at most six entries.
std::string short_text(const Json& numbers);
// Six significant digits; "-" for null.
std::string short_number(const Json& number);

}  // namespace esscher::cli
