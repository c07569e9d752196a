// Measures, attention and queries in configuration files.
//
//   [measure]  type = "gaussian"     dim, mean = 0, cov = 1.0
//              type = "empirical"    tokens = [[..], ..] or file = "tokens.npy"; weights = [..]
//              type = "rademacher"   dim          type = "uniform"  dim
//              type = "sphere"       dim, radius = 1     type = "ball"  dim, radius = 1
//              type = "laplace"      dim, b = 1
//              type = "categorical"  probs = [..], or dim for equal ones
//              type = "mixture"      weights (equal unless given), [[measure.parts]]
//              type = "product"      [[measure.parts]]       type = "sum"  [[measure.parts]]
//              type = "affine"       shift = 0, matrix = I, one [[measure.parts]]
//              type = "dirac"        point = [..]
//              type = "elliptical"   mean = 0, cov, scales = [..], weights (equal unless given); or
//                                    radial = "gamma", shape, bound
//              type = "student"      nu, mean = 0, cov
//              type = "single_index" index = [..], cov = 1.0, link = "tanh", noise_variance = 0,
//                                    coefficients = [c0, c1, c2] of link = "polynomial"
//              type = "stationary"   autocorrelation = [r1, ..] or ar = A, with of = a measure table;
//                                    or file = "tokens.npy", from which all is estimated
//   [attention]  U = I, V = I, or K, Q and V; score_scale = 1; kind = "softmax"
//   [query]      points = [[..], ..] or z = [..] or file = "z.npy", or a measure table
#pragma once

#include <optional>

#include "esscher/attention/attention.h"
#include "esscher/config/table.h"
#include "esscher/measure/any_measure.h"

namespace esscher {

AnyMeasure read_measure(const Table& table);

// Reads [attention] for tokens of dimension dim. A missing table means the defaults.
Attention read_attention(const Table& root, Index dim);
// Reads the key kind of the same table.
bool attention_is_linear(const Table& root);

// Queries are points [n,dim], or the law that they are drawn from.
struct Query {
  Matrix points;
  std::optional<AnyMeasure> law;
};
Query read_query(const Table& root, Index dim);

}  // namespace esscher
