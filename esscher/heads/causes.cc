#include "esscher/heads/causes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "esscher/base/number_text.h"
#include "esscher/base/parallel.h"
#include "esscher/estimate/interval.h"
#include "esscher/estimate/moments.h"
#include "esscher/estimate/quantile.h"
#include "esscher/heads/detail/two_clusters.h"
#include "esscher/heads/detail/visible_moments.h"
#include "esscher/heads/detail/whitening.h"

namespace esscher {
namespace {

constexpr double kBeyondThree = 0.0026997960632601866;  // P(|N(0,1)| > 3)
constexpr double kTwoSided = 1.96;
constexpr Index kFewestBeyond =
    3;  // keys beyond three deviations, below which their share has no error
constexpr Index kFewestKeys = 4 * kCauseBlocks;
constexpr double kMuch = 0.1;  // of the variance, that follows from positions
constexpr double kMost = 0.5;  // of the queries, that one key dominates
constexpr Index kDirections = 3;

std::string text(double x) { return brief(x, 3); }

// Orders of so many blocks hardly ever put the same ones in the first half again.
constexpr Index kDriftBlocks = 20;

// What the error of a drift leaves out of one half at a time: every fifth of twenty stretches.
constexpr Index kDriftParts = 5, kDriftStretches = 20;

Index block_begin(Index n, Index block, Index blocks = kCauseBlocks) { return block * n / blocks; }

// All rows but those of one block.
Matrix without(const MatrixView& rows, Index block) {
  const Index first = block_begin(rows.rows(), block);
  const Index last = block_begin(rows.rows(), block + 1);
  Matrix out(rows.rows() - (last - first), rows.cols());
  out << rows.topRows(first), rows.bottomRows(rows.rows() - last);
  return out;
}

// The standard error of a statistic from its values without one of `blocks` parts each.
double jackknife(Index blocks, const std::function<double(Index block)>& without_block) {
  std::vector<double> x;
  for (Index b = 0; b < blocks; ++b) x.push_back(without_block(b));
  const auto n = static_cast<double>(blocks);
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
  double squares = 0;
  for (const double one : x) squares += (one - mean) * (one - mean);
  return std::sqrt(squares * (n - 1) / n);
}

// Student's interval: ten blocks know their own spread badly.
CauseRow with_interval(Cause cause, double value, double std_error, Index dof = kCauseBlocks - 1) {
  const Interval ci = student_interval(value, std_error, static_cast<double>(dof));
  return {.cause = cause, .value = value, .low = ci.lo, .high = ci.hi, .text = {}};
}

// Each query's scores with mean 0 and variance 1; columns that do not vary are left out.
Matrix standardised(const MatrixView& scores) {
  Matrix out = centred_rows(scores);
  Index used = 0;
  for (Index i = 0; i < out.cols(); ++i) {
    const double deviation =
        out.col(i).norm() / std::sqrt(static_cast<double>(std::max<Index>(1, out.rows())));
    if (!(deviation > 1e-12 * scores.col(i).cwiseAbs().maxCoeff())) continue;
    out.col(used++) = out.col(i) / deviation;
  }
  out.conservativeResize(Eigen::NoChange, used);
  return out;
}

using Statistic = double (*)(const MatrixView&);

// Values of a statistic on prompts of Gaussian keys with this covariance of scores.
std::vector<double> null_values(Statistic statistic, const Matrix& up, Index n,
                                const Stream& stream) {
  std::vector<double> out(kCauseReplicates);
  parallel_for(kCauseReplicates, [&](std::int64_t r) {
    Matrix x(n, up.cols());
    stream.split(static_cast<std::uint64_t>(r))
        .fill_normal(0, std::span<double>(x.data(), static_cast<std::size_t>(x.size())));
    out[static_cast<std::size_t>(r)] = statistic(x * up.transpose());
  });
  return out;
}

// The test: `size` of the value against that of every null value; none may be as large.
void test_against(const std::vector<double>& null, double (*size)(double), CauseRow& row) {
  const auto above =
      std::count_if(null.begin(), null.end(), [&](double x) { return size(x) >= size(row.value); });
  row.typical = median(null);
  row.p = static_cast<double>(1 + above) / static_cast<double>(1 + null.size());
  row.found = above == 0;
}

// The distance of the mean scores of the first rows and of the others, in deviations.
double drift_of(const MatrixView& scores, Index first) {
  const Matrix s = standardised(scores);
  if (s.size() == 0 || first < 1 || first >= s.rows()) return 0;
  const Vector gap =
      s.topRows(first).colwise().mean() - s.bottomRows(s.rows() - first).colwise().mean();
  return gap.norm() / std::sqrt(static_cast<double>(s.cols()));
}

double from_three(double x) { return std::abs(x - 3); }
double as_it_is(double x) { return x; }

CauseRow scored(Cause cause, Statistic statistic, double error, double (*size)(double),
                const Matrix& s, const Matrix& up, const Stream& stream) {
  CauseRow row = with_interval(cause, statistic(s), error);
  test_against(null_values(statistic, up, s.rows(), stream), size, row);
  return row;
}

std::string interval_text(const CauseRow& row) {
  return " (95 %: " + text(row.low) + " to " + (std::isfinite(row.high) ? text(row.high) : "more") +
         (row.flag ? ", not to be trusted: " + *row.flag : "") + ")";
}

CauseRow kurtosis_row(const Matrix& s, const Matrix& up, const Stream& stream) {
  CauseRow row =
      scored(Cause::kurtosis, median_kurtosis, median_kurtosis_error(s), from_three, s, up, stream);
  // Its error is made of eighth moments, which n keys of such a law do not show.
  if (row.found && row.value > 3) row.flag = "few keys carry the kurtosis of peaked scores";
  row.text = std::string(row.value > 3 ? "scores are more peaked" : "scores are flatter") +
             " than Gaussian ones: kurtosis " + text(row.value) + interval_text(row);
  return row;
}

CauseRow tails_row(const Matrix& s, const Matrix& up, const Stream& stream) {
  const double error =
      jackknife(kCauseBlocks, [&](Index block) { return tail_ratio(without(s, block)); });
  CauseRow row = scored(Cause::tails, tail_ratio, error, as_it_is, s, up, stream);
  row.low = std::max(0.0, row.low);
  if (((s.array().abs() > 3.0).rowwise().any()).count() < kFewestBeyond) {
    row.flag = "fewer than " + std::to_string(kFewestBeyond) + " keys lie beyond three deviations";
  }
  row.text = "scores beyond three deviations are " + text(row.value) +
             " times as frequent as Gaussian ones" + interval_text(row);
  return row;
}

// The gain of every key by clusters that were fitted to the blocks of the other parity.
Vector cluster_gains(const MatrixView& scores) {
  const Matrix s = centred_rows(scores);
  const Whitening white = whitening(s.transpose() * s / static_cast<double>(s.rows()));
  const Matrix x = s * white.down.rightCols(std::min(kDirections, white.down.cols()));
  std::array<std::vector<Index>, 2> places;
  for (Index l = 0; l < x.rows(); ++l) {
    places[static_cast<std::size_t>(l * kCauseBlocks / x.rows() % 2)].push_back(l);
  }
  Vector out(x.rows());
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const Vector gains = held_out_gains(gathered(x, places[1 - side]), gathered(x, places[side]));
    for (std::size_t i = 0; i < places[side].size(); ++i) {
      out(places[side][i]) = gains(static_cast<Index>(i));
    }
  }
  return out;
}

// The interval is that of the means of blocks.
CauseRow clusters_row(const Matrix& s, const Matrix& up, const Stream& stream) {
  const Vector gains = cluster_gains(s);
  const double mean = gains.mean();
  double squares = 0;
  for (Index b = 0; b < kCauseBlocks; ++b) {
    const Index first = block_begin(s.rows(), b);
    const double block = gains.segment(first, block_begin(s.rows(), b + 1) - first).mean();
    squares += (block - mean) * (block - mean);
  }
  CauseRow row = with_interval(Cause::clusters, mean,
                               std::sqrt(squares / (kCauseBlocks * (kCauseBlocks - 1.0))));
  test_against(null_values(cluster_gain, up, s.rows(), stream), as_it_is, row);
  row.text = "two clusters explain unseen keys better than one Gaussian by " + text(row.value) +
             " nats per key" + interval_text(row);
  return row;
}

// Blocks in random order; the two halves of a stationary prompt then differ as these do.
std::vector<double> shuffled_drifts(const Matrix& s, const Stream& stream) {
  std::vector<double> out;
  for (Index r = 0; r < kCauseReplicates; ++r) {
    std::vector<Index> order(kDriftBlocks);
    std::iota(order.begin(), order.end(), Index{0});
    for (Index i = kDriftBlocks - 1; i > 0; --i) {
      const double u = stream.uniform(static_cast<std::uint64_t>(r * kDriftBlocks + i));
      std::swap(order[static_cast<std::size_t>(i)],
                order[static_cast<std::size_t>(u * static_cast<double>(i + 1))]);
    }
    Matrix moved(s.rows(), s.cols());
    Index used = 0;
    for (const Index block : order) {
      const Index first = block_begin(s.rows(), block, kDriftBlocks);
      const Index count = block_begin(s.rows(), block + 1, kDriftBlocks) - first;
      moved.middleRows(used, count) = s.middleRows(first, count);
      used += count;
    }
    out.push_back(half_drift(moved));
  }
  return out;
}

// The drift between the halves without part k of kDriftParts of each half that `first` names. A part
// is made of stretches all over its half, so that keys which drift within a half do not pass for noise.
double drift_without(const Matrix& s, bool first, Index part) {
  const Index half = s.rows() / 2;
  std::vector<Index> rows;
  Index kept_first = 0;
  for (Index l = 0; l < s.rows(); ++l) {
    const Index begin = l < half ? 0 : half, size = l < half ? half : s.rows() - half;
    const bool out =
        (l < half) == first && (l - begin) * kDriftStretches / size % kDriftParts == part;
    if (out) continue;
    rows.push_back(l);
    kept_first += l < half ? 1 : 0;
  }
  return drift_of(gathered(s, rows), kept_first);
}

// Halves without a drift have one of zero, which the distance of two means never is: the lower end is
// zero unless the test finds a drift.
CauseRow drift_row(const Matrix& s, const Stream& stream) {
  double error2 = 0;
  for (const bool first : {true, false}) {
    const double error =
        jackknife(kDriftParts, [&](Index part) { return drift_without(s, first, part); });
    error2 += error * error;
  }
  CauseRow row =
      with_interval(Cause::drift, half_drift(s), std::sqrt(error2), 2 * (kDriftParts - 1));
  test_against(shuffled_drifts(s, stream), as_it_is, row);
  row.low = row.found ? std::max(0.0, row.low) : 0;
  row.text = "mean scores of the first and the second half of the prompt are " + text(row.value) +
             " deviations apart" + interval_text(row);
  return row;
}

CauseRow dependence_row(const KeyDependence& kappa) {
  CauseRow row{.cause = Cause::dependence,
               .value = kappa.kappa,
               .low = kappa.low,
               .high = kappa.high,
               .found = kappa.low > 1,
               .text = {}};
  row.text = "neighbouring keys depend on each other: n keys are worth n/" + text(row.value) +
             interval_text(row);
  return row;
}

// Wilson's interval of a share.
CauseRow dominant_row(double share, Index queries) {
  const auto n = static_cast<double>(queries);
  const double z2 = kTwoSided * kTwoSided;
  const double middle = (share + z2 / (2 * n)) / (1 + z2 / n);
  const double half =
      kTwoSided / (1 + z2 / n) * std::sqrt(share * (1 - share) / n + z2 / (4 * n * n));
  CauseRow row{.cause = Cause::dominant,
               .value = share,
               .low = std::max(0.0, middle - half),
               .high = std::min(1.0, middle + half),
               .text = {}};
  row.found = row.low > kMost;
  row.text = "one key takes more than half of the weight of " + text(100 * share) +
             " % of the queries (95 %: " + text(100 * row.low) + " to " + text(100 * row.high) +
             ")";
  return row;
}

// The median over queries of Var_l <a, R_l u> / Var <a, k>, u the mean of the given un-rotated keys.
double position_share(const CauseInput& in, const Vector& u) {
  std::vector<double> shares;
  for (Index i = 0; i < in.a.rows(); ++i) {
    const Matrix turned = turned_back(*in.rotary, in.a.row(i).transpose(), in.places);
    const Vector mean = turned * u;
    const Vector s = in.scores.col(i);
    const double all = (s.array() - s.mean()).square().sum();
    if (all > 0) shares.push_back((mean.array() - mean.mean()).square().sum() / all);
  }
  return shares.empty() ? 0.0 : median(shares);
}

CauseRow position_row(const CauseInput& in) {
  Matrix still(in.keys.rows(), in.keys.cols());
  for (Index l = 0; l < still.rows(); ++l) {
    still.row(l) =
        rotated(*in.rotary, in.keys.row(l), in.places[static_cast<std::size_t>(l)], true).row(0);
  }
  const auto share = [&](const MatrixView& rows) {
    return position_share(in, rows.colwise().mean().transpose());
  };
  const double error =
      jackknife(kCauseBlocks, [&](Index block) { return share(without(still, block)); });
  CauseRow row = with_interval(Cause::position, share(still), error);
  row.low = std::max(0.0, row.low);
  row.found = row.low > kMuch;
  row.text = "positions alone make " + text(100 * row.value) +
             " % of the variance of scores (95 %: " + text(100 * row.low) + " to " +
             text(100 * row.high) + ")";
  return row;
}

}  // namespace

double median_kurtosis(const MatrixView& scores) {
  const Matrix s = standardised(scores);
  std::vector<double> out;
  for (Index i = 0; i < s.cols(); ++i) out.push_back(s.col(i).array().square().square().mean());
  return out.empty() ? 3.0 : median(out);
}

double median_kurtosis_error(const MatrixView& scores) {
  const Matrix s = standardised(scores);
  if (s.cols() == 0) return 0;
  // Rows: sums of the first to the fourth power.
  std::vector<Matrix> sums;
  std::vector<double> sizes;
  for (Index b = 0; b < kCauseBlocks; ++b) {
    const Index first = block_begin(s.rows(), b), size = block_begin(s.rows(), b + 1) - first;
    const Eigen::ArrayXXd x = s.middleRows(first, size).array();
    Matrix powers(4, s.cols());
    powers << x.colwise().sum(), x.square().colwise().sum(), x.cube().colwise().sum(),
        x.square().square().colwise().sum();
    sums.push_back(std::move(powers));
    sizes.push_back(static_cast<double>(size));
  }
  Moments halves;
  for (unsigned half = 0; half < 1U << kCauseBlocks; ++half) {
    if (std::popcount(half) != kCauseBlocks / 2) continue;
    Matrix m = Matrix::Zero(4, s.cols());
    double n = 0;
    for (unsigned b = 0; b < kCauseBlocks; ++b) {
      if ((half >> b & 1U) == 0) continue;
      m += sums[b];
      n += sizes[b];
    }
    m /= n;
    std::vector<double> of_query;
    for (Index i = 0; i < m.cols(); ++i) {
      const double m1 = m(0, i), m2 = m(1, i), m3 = m(2, i), variance = m2 - m1 * m1;
      const double fourth = m(3, i) - 4 * m1 * m3 + 6 * m1 * m1 * m2 - 3 * std::pow(m1, 4);
      if (variance > 0) of_query.push_back(fourth / (variance * variance));
    }
    halves.add(of_query.empty() ? 3.0 : median(of_query));
  }
  return std::sqrt(halves.sum_of_squares() / static_cast<double>(halves.count()));
}

double tail_ratio(const MatrixView& scores) {
  const Matrix s = standardised(scores);
  if (s.size() == 0) return 0;
  const auto beyond = static_cast<double>((s.array().abs() > 3.0).count());
  return beyond / static_cast<double>(s.size()) / kBeyondThree;
}

double half_drift(const MatrixView& scores) { return drift_of(scores, scores.rows() / 2); }

double cluster_gain(const MatrixView& scores) { return cluster_gains(scores).mean(); }

std::vector<CauseRow> cause_rows(const CauseInput& input, const Stream& stream) {
  std::vector<CauseRow> rows;
  const Matrix s = standardised(input.scores);
  if (s.rows() >= kFewestKeys && s.cols() > 0) {
    const Matrix up = whitening(s.transpose() * s / static_cast<double>(s.rows())).up;
    rows.push_back(kurtosis_row(s, up, stream.split(0)));
    rows.push_back(tails_row(s, up, stream.split(1)));
    rows.push_back(clusters_row(s, up, stream.split(2)));
    rows.push_back(drift_row(s, stream.split(3)));
  }
  if (input.dependence) rows.push_back(dependence_row(*input.dependence));
  if (input.rotary && input.keys.rows() >= kFewestKeys) rows.push_back(position_row(input));
  rows.push_back(dominant_row(input.dominant, input.queries));
  return rows;
}

std::string causes_text(const std::vector<CauseRow>& rows) {
  std::string out;
  for (const CauseRow& row : rows) {
    if (row.found) out += (out.empty() ? "" : "; ") + row.text;
  }
  return out.empty() ? "no departure from independent Gaussian keys is found at level 5 %" : out;
}

}  // namespace esscher
