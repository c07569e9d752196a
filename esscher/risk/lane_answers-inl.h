// What one prompt asks for, kept once for the kernels of one head and of several. Included once per
// Highway target.
#if defined(ESSCHER_RISK_LANE_ANSWERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ESSCHER_RISK_LANE_ANSWERS_INL_H_
#undef ESSCHER_RISK_LANE_ANSWERS_INL_H_
#else
#define ESSCHER_RISK_LANE_ANSWERS_INL_H_
#endif

#include "esscher/risk/detail/lanes.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {

// The lanes from o on of prompts with tasks w [d] and white queries n [d]: work becomes w~ = F'w, and
// w'Fq n is added to the noise of the label in y, which makes it the target.
template <class D, class Rows>
HWY_INLINE void add_answers(D dd, const LaneBatch& batch, Index d, Index o, Rows& rows) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto at = [&](double* row) HWY_ATTR { return hn::LoadU(dd, row + o); };
  const auto c = [&](double x) HWY_ATTR { return hn::Set(dd, x); };
  auto y = at(rows.y());
  for (Index i = 0; i < d; ++i) {
    auto x = hn::Zero(dd);
    auto white = hn::Zero(dd);
    for (Index k = 0; k < d; ++k) {
      x = hn::MulAdd(c((*batch.Fq)(i, k)), at(rows.query(k)), x);
      white = hn::MulAdd(c((*batch.F)(k, i)), at(rows.w(k)), white);
    }
    y = hn::MulAdd(at(rows.w(i)), x, y);
    hn::StoreU(white, dd, rows.work(i) + o);
  }
  hn::StoreU(y, dd, rows.y() + o);
}

}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
