#include "esscher/heads/layout.h"

#include <cmath>
#include <limits>

#include "esscher/base/error.h"

namespace esscher {
namespace {

[[noreturn]] void fail(const std::string& where, const Array& array, const std::string& expected) {
  throw FileError(where + ": shape " + array.shape_text() + ", expected " + expected);
}

// Part `i` of `parts` equal ones, as a matrix of this shape.
Array part_of(const Array& array, Index i, Index parts, Index rows, Index cols) {
  const std::size_t bytes = parts == 0 ? 0 : array.data.size() / static_cast<std::size_t>(parts);
  Array out = array;
  out.shape = {rows, cols};
  out.data = array.data.subspan(static_cast<std::size_t>(i) * bytes, bytes);
  return out;
}

// b batches of h heads of n tokens, heads first or tokens first.
StackedHeads split(const Array& array, Index b, Index h, Index n, Index d, bool tokens_first) {
  StackedHeads out{.batches = b, .heads = h, .slices = {}};
  for (Index i = 0; i < b; ++i) {
    for (Index j = 0; j < h; ++j) {
      if (tokens_first) {
        out.slices.push_back({part_of(array, i, b, n, h * d), j * d, d});
      } else {
        out.slices.push_back({part_of(array, i * h + j, b * h, n, d), 0, d});
      }
    }
  }
  return out;
}

}  // namespace

StackedHeads unstack_heads(const std::string& where, const Array& array,
                           std::optional<HeadLayout> layout) {
  const std::vector<std::int64_t>& s = array.shape;
  if (s.size() <= 2) {
    const MatrixShape shape = matrix_shape(where, array);
    return {.batches = 1, .heads = 1, .slices = {{array, 0, shape.cols}}};
  }
  if (array.fortran) fail(where, array, "C order where heads are stacked");
  if (s.size() == 4) {
    if (!layout) fail(where, array, "a named layout: bhnd for [b,h,n,d], bnhd for [b,n,h,d]");
    if (*layout == HeadLayout::bhnd) return split(array, s[0], s[1], s[2], s[3], false);
    if (*layout == HeadLayout::bnhd) return split(array, s[0], s[2], s[1], s[3], true);
  } else if (s.size() == 3) {
    if (!layout && s[0] > s[1]) {
      fail(where, array,
           "a named layout: hnd for " + std::to_string(s[0]) + " heads of " + std::to_string(s[1]) +
               " tokens, nhd for " + std::to_string(s[1]) + " heads of " + std::to_string(s[0]) +
               " tokens");
    }
    const HeadLayout named = layout.value_or(HeadLayout::hnd);
    if (named == HeadLayout::hnd) return split(array, 1, s[0], s[1], s[2], false);
    if (named == HeadLayout::nhd) return split(array, 1, s[1], s[0], s[2], true);
  }
  const std::string named = layout ? " in the layout " + std::string(name(*layout)) : "";
  fail(where, array, "[n,d] or stacked heads" + named);
}

Vector mask_row(const std::string& where, const Array& mask, const MaskPlace& at, Index n) {
  std::vector<std::int64_t> s = mask.shape;
  if (s.empty() || s.size() > 4 || mask.fortran) {
    fail(where, mask, "[n], [m,n], [h,m,n] or [b,h,m,n] in C order");
  }
  if (s.size() == 2 && at.batches > 1) s = {s[0], 1, 1, s[1]};
  while (s.size() < 4) s.insert(s.begin(), 1);
  const auto place = [&](std::size_t axis, Index i, Index all, const char* what) {
    if (s[axis] == 1) return Index{0};
    if (s[axis] != all) fail(where, mask, "1 or " + std::to_string(all) + " " + what);
    return i;
  };
  if (s[3] != n) fail(where, mask, "the " + std::to_string(n) + " keys last");
  const Index stack =
      place(0, at.batch, at.batches, "batches") * s[1] + place(1, at.head, at.heads, "heads");
  const Index row = stack * s[2] + place(2, at.query, at.queries, "queries");
  Vector out(n);
  for (Index l = 0; l < n; ++l) {
    const double value = mask.at(static_cast<std::size_t>(row * n + l));
    if (mask.dtype != DType::boolean) {
      out(l) = value;
    } else {
      out(l) = value != 0 ? 0.0 : -std::numeric_limits<double>::infinity();
    }
  }
  return out;
}

}  // namespace esscher
