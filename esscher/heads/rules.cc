#include "esscher/heads/rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/heads/head.h"

namespace esscher {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

// Rows with one more column, which `last` computes from the number of the row.
RowSource widened(RowSource rows, std::function<double(Index)> last) {
  return [rows = std::move(rows), last = std::move(last)](Index first, Index count) {
    const Matrix narrow = rows(first, count);
    Matrix out(narrow.rows(), narrow.cols() + 1);
    out.leftCols(narrow.cols()) = narrow;
    for (Index i = 0; i < out.rows(); ++i) out(i, narrow.cols()) = last(first + i);
    return out;
  };
}

Vector bias_of(const Head& head, Index query) {
  const Vector bias = head.rules.bias(query);
  const std::string where = "head " + head.name;
  check_dimension(where, "mask of query " + std::to_string(query), bias.size(), head.n);
  for (const double b : bias) {
    if (!(b < std::numeric_limits<double>::infinity())) {
      throw_argument(where, "mask of query " + std::to_string(query), to_text(b),
                     "numbers to add to scores, or -inf");
    }
  }
  return bias;
}

}  // namespace

SeenKeys seen_keys(const Head& head, const MatrixView& K, Index query) {
  const Index begin = head.prompt_begin(query);
  const Index end = head.prompt_end(query);
  const Vector a = head.scale * head.Q(query, 1).row(0).transpose();
  Vector s = K.middleRows(begin, end - begin) * a;
  const double cap = head.rules.softcap;
  if (cap > 0) s = cap * (s.array() / cap).tanh();
  if (head.rules.bias) s += bias_of(head, query).segment(begin, end - begin);
  SeenKeys out;
  out.scores = Vector(s.size());
  Index used = 0;
  for (Index l = 0; l < s.size(); ++l) {
    if (s(l) == kHidden) continue;
    out.keys.push_back(begin + l);
    out.scores(used++) = s(l);
  }
  out.scores.conservativeResize(used);
  return out;
}

bool sees_keys(const Head& head, Index query) {
  const Index begin = head.prompt_begin(query);
  const Index end = head.prompt_end(query);
  if (!head.rules.bias) return end > begin;
  return (bias_of(head, query).segment(begin, end - begin).array() > kHidden).any();
}

Head with_alibi(Head head, double slope) {
  const std::string where = "head " + head.name;
  if (head.rules.softcap != 0 || head.rules.sink) {
    throw_argument(where, "alibi", to_text(slope), "no softcap and no sink logit beside it");
  }
  if (!std::isfinite(slope)) throw_argument(where, "alibi", to_text(slope), "a finite number");
  if (head.scale == 0) throw_argument(where, "scale", "0", "another number where alibi is given");
  if (head.rotary && head.rotary->dims == 0) head.rotary->dims = head.dk;
  const double one = 1 / head.scale;
  head.Q = widened(std::move(head.Q), [one](Index) { return one; });
  head.K = widened(std::move(head.K), [slope](Index l) { return slope * static_cast<double>(l); });
  head.dk += 1;
  return head;
}

}  // namespace esscher
