// How the heads of a tensor are stacked. A layout is named by the user or by the file and never
// guessed from a shape: [1,1024,12,64] is 12 heads of 1024 tokens or 1024 heads of 12 tokens.
//
//   [n,d]                one head, whatever the layout is called
//   hnd   [h,n,d]        stacked heads; this is what three dimensions mean if nothing else is said
//   nhd   [n,h,d]        tokens first
//   bhnd  [b,h,n,d]      as PyTorch's scaled_dot_product_attention takes them
//   bnhd  [b,n,h,d]      as TransformerLens and flash-attention keep them
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "esscher/base/enum_names.h"
#include "esscher/io/array.h"

namespace esscher {

enum class HeadLayout { hnd, nhd, bhnd, bnhd };

constexpr auto enum_names(HeadLayout) {
  return EnumNames<HeadLayout, 4>{"layout",
                                  {{{HeadLayout::hnd, "hnd"},
                                    {HeadLayout::nhd, "nhd"},
                                    {HeadLayout::bhnd, "bhnd"},
                                    {HeadLayout::bnhd, "bnhd"}}}};
}

// Columns [first, first + cols) of a 2-d array: the rows of one head.
struct HeadSlice {
  Array rows;
  Index first = 0;
  Index cols = 0;
};

// batches * heads slices, the heads of the first batch first.
struct StackedHeads {
  Index batches = 1;
  Index heads = 1;
  std::vector<HeadSlice> slices;

  [[nodiscard]] const HeadSlice& at(Index batch, Index head) const {
    return slices[static_cast<std::size_t>(batch * heads + head)];
  }
};

// Throws a FileError that starts with `where` and names the shape if the layout has another number of
// dimensions, if four dimensions come without a layout, if three come without one and hold more
// heads than tokens, and for Fortran order.
StackedHeads unstack_heads(const std::string& where, const Array& array,
                           std::optional<HeadLayout> layout);

// The numbers that a mask adds to the scores of one query [n]. A mask has the shape [n], [m,n] (of a
// batch: [b,n]), [h,m,n] or [b,h,m,n], where b, h and m may be 1. A boolean mask is true where the
// query sees the key; other numbers are added to the scores.
// Throws a FileError that names the shape if it is another.
struct MaskPlace {
  Index batch = 0, batches = 1;
  Index head = 0, heads = 1;
  Index query = 0, queries = 1;
};
Vector mask_row(const std::string& where, const Array& mask, const MaskPlace& at, Index n);

}  // namespace esscher
