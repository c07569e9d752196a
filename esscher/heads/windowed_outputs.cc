#include "esscher/heads/windowed_outputs.h"

#include "esscher/base/error.h"

namespace esscher {

Matrix windowed_outputs(const WindowOptions& options, const MatrixView& Q, const MatrixView& K,
                        const MatrixView& V, double scale, bool causal) {
  const char* where = "windowed head";
  const Index m = Q.rows();
  const Index n = K.rows();
  check_dimension(where, "Q (columns)", Q.cols(), K.cols());
  check_dimension(where, "V (rows)", V.rows(), n);
  if (causal && m > n) {
    throw_argument(where, "number of queries", std::to_string(m),
                   "at most the " + std::to_string(n) + " keys of a causal head");
  }
  if (options.heavy > 0 && !(causal && m == n)) {
    throw_argument(where, "heavy", std::to_string(options.heavy),
                   "0 unless the head is causal and has a query for every key");
  }
  WindowedHead window(K.cols(), V.cols(), options);
  const Index before = causal ? n - m : n;
  if (before > 0) window.push(K.topRows(before), V.topRows(before));
  Matrix out(m, V.cols());
  for (Index i = 0; i < m; ++i) {
    if (causal) window.push(K.row(before + i), V.row(before + i));
    out.row(i) = window.attend(scale * Q.row(i).transpose()).transpose();
  }
  return out;
}

}  // namespace esscher
