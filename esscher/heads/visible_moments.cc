#include "esscher/heads/detail/visible_moments.h"

#include <algorithm>
#include <iterator>

namespace esscher {

Matrix gathered(const MatrixView& rows, const std::vector<Index>& which) {
  Matrix out(static_cast<Index>(which.size()), rows.cols());
  for (std::size_t i = 0; i < which.size(); ++i) {
    out.row(static_cast<Index>(i)) = rows.row(which[i]);
  }
  return out;
}

VisibleMoments::VisibleMoments(SurrogateModel& model, const Matrix& keys, const Matrix& values)
    : model_(model), keys_(keys), values_(values) {
  shares_ = model.fit ? responsibilities(*model.fit, keys) : Matrix(Matrix::Ones(keys.rows(), 1));
}

PromptMoments VisibleMoments::part(const std::vector<Index>& which) const {
  PromptMoments out(model_.k, model_.moments.origin_k(), model_.moments.origin_v());
  out.add(gathered(keys_, which), gathered(values_, which), gathered(shares_, which));
  return out;
}

void VisibleMoments::move_to(const std::vector<Index>& seen) {
  std::vector<Index> wanted;
  std::copy_if(seen.begin(), seen.end(), std::back_inserter(wanted),
               [&](Index key) { return !model_.split || is_fitted(key); });
  std::vector<Index> come, go;
  std::set_difference(wanted.begin(), wanted.end(), inside_.begin(), inside_.end(),
                      std::back_inserter(come));
  std::set_difference(inside_.begin(), inside_.end(), wanted.begin(), wanted.end(),
                      std::back_inserter(go));
  if (come.size() + go.size() >= wanted.size()) {  // no less work than from the beginning
    model_.moments = part(wanted);
  } else {
    if (!come.empty()) {
      model_.moments.add(gathered(keys_, come), gathered(values_, come), gathered(shares_, come));
    }
    if (!go.empty()) model_.moments.subtract(part(go));
  }
  inside_ = std::move(wanted);
}

}  // namespace esscher
