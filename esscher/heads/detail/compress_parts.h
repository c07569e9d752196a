// Methods of heads/compress.h that need more than a few lines.
#pragma once

#include "esscher/heads/compress.h"

namespace esscher {

// The symmetric root R [dk,dk] of E[aa'] over the calibration queries: |R k| is how far apart they
// see keys.
Matrix query_metric(const MatrixView& calibration);

std::optional<Compressed> affine_map(const CompressInput& input, Index numbers);

std::optional<Compressed> random_features(const CompressInput& input, Index numbers,
                                          const Stream& stream);

}  // namespace esscher
