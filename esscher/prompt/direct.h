// The direct engine: attention over tokens that are given, by the SIMD kernels of tilt/.
//
//   T_hat(z) = V zbar,  zbar = sum omega_l z_l,  omega = softmax(<U z, z_l> + log p_l)
//   gradients for a cotangent g from zbar and C_hat V'g (attention.h), both in one pass
//
// Tokens are in memory (Empirical), in a .npy file larger than memory, or in a batch of prompts of
// equal length. Up to rounding the results are those of Attention on Empirical, in double unless
// the tokens are float32.
#pragma once

#include <span>

#include "esscher/attention/attention.h"
#include "esscher/io/npy.h"
#include "esscher/measure/empirical.h"
#include "esscher/tilt/tilt.h"

namespace esscher {

struct DirectResult {
  Vector output;                 // [dv]
  AttentionGradients gradients;  // for the cotangent given
};

// z [d] -> [dv]
Vector direct_output(const Attention& attention, const Empirical& prompt, const VectorView& z);

// queries [q,d] -> [q,dv]
Matrix direct_outputs(const Attention& attention, const Empirical& prompt,
                      const MatrixView& queries);

// z [d], g [dv]: output and all gradients in one pass over the tokens.
DirectResult direct_vjp(const Attention& attention, const Empirical& prompt, const VectorView& z,
                        const VectorView& g);

// Tokens [n,d] in memory that the caller owns, read in place: double, or float in the float kernels
// (about 1e-6 relative). Throws ArgumentError if there is no token or one that is not finite.
template <class T>
Matrix direct_outputs(const Attention& attention, const Rows<T>& tokens, const MatrixView& queries);
template <class T>
DirectResult direct_vjp(const Attention& attention, const Rows<T>& tokens, const VectorView& z,
                        const VectorView& g);

// Many queries [q,d] and cotangents [q,dv] on the same tokens, as matrix products.
struct DirectRows {
  Matrix outputs;                // [q,dv]
  Matrix z;                      // [q,d]: row i is the gradient in query i
  AttentionGradients gradients;  // sums over the queries; z is empty
};

DirectRows direct_vjps(const Attention& attention, const Empirical& prompt,
                       const MatrixView& queries, const MatrixView& g);
template <class T>
DirectRows direct_vjps(const Attention& attention, const Rows<T>& tokens, const MatrixView& queries,
                       const MatrixView& g);

// Row i: the output of the first lengths[i] tokens [lengths,dv]; lengths increasing.
Matrix direct_prefixes(const Attention& attention, const Empirical& prompt, const VectorView& z,
                       std::span<const Index> lengths);

// The rows of the file are the tokens. They are read in chunks of about 16 MiB, so that resident
// memory does not depend on the size of the file. float32 files run in the float kernels without a
// copy. Throws FileError if a token is not finite.
Vector direct_output(const Attention& attention, const NpyReader& tokens, const VectorView& z);
DirectResult direct_vjp(const Attention& attention, const NpyReader& tokens, const VectorView& z,
                        const VectorView& g);

// b prompts of `length` tokens each, one query and one cotangent per prompt.
struct DirectBatch {
  Matrix outputs;                // [b,dv]
  AttentionGradients gradients;  // sums over the batch; z is empty
};

// tokens [b*length,d] float32: prompt i is rows i*length .. (i+1)*length; queries [b,d]; g [b,dv].
DirectBatch direct_batch(const Attention& attention, const Rows<float>& tokens, Index length,
                         const MatrixView& queries, const MatrixView& g);

}  // namespace esscher
