#include "esscher/prompt/group_integrals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <optional>
#include <tuple>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/prompt/detail/tail_sweep.h"
#include "esscher/prompt/detail/token_nodes.h"

namespace esscher {
namespace {

using detail::LadderSums;
using detail::TokenAt;
using detail::TokenNodes;

// The integrands are analytic for |Im u| < pi/2: the error is e^{-pi^2/kStep} = 7e-18 of them.
constexpr double kStep = 1.0 / 4;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// The sweep ends where the product of all phi, or the sum of all psi, is below these.
constexpr double kLogEnd = -45;
constexpr double kLeftEnd = 1e-20;
// Tokens whose log-weight is this far below that of the nearest one add rounding only.
constexpr double kFaint = 45;
// A linear part below this share of its terms is rounding.
constexpr double kRounding = 1e-12;

// Step of the rule and of the lattice of log-weights: one is a multiple of the other.
struct Steps {
  double u = kStep, delta = kStep;
  long per_u = 1, per_token = 0;  // in units of delta

  explicit Steps(double slope) {
    if (slope <= 0) return;
    per_token = std::max(1L, static_cast<long>(std::ceil(slope / kStep)));
    delta = slope / static_cast<double>(per_token);
    per_u = std::max(1L, static_cast<long>(std::floor(kStep / delta)));
    u = delta * static_cast<double>(per_u);
  }
};

// A segment that takes part.
struct Part {
  std::size_t at;  // place among the segments asked about
  const TokenNodes* law;
  std::map<double, TokenAt>* known;  // tokens at u = i * step
  double bias;                       // of its first token
  double n;
  std::optional<LadderSums> ladder = {};

  [[nodiscard]] double top() const { return bias + law->highest(); }
};

// All given tokens together: phi = exp(-y size), y = e^{u + top}.
struct Given {
  double top = -kInfinity;
  Vector share;                // e^{log_weight - top}
  double size = 0, size2 = 0;  // sums of share and of its square
  double size_log = 0;         // sum of share log share
  Vector x;                    // sum of share x

  Given(const GivenTokens& tokens, Index dv) : share(tokens.log_weight), x(Vector::Zero(dv)) {
    if (share.size() > 0) top = share.maxCoeff();
    if (top == -kInfinity) {
      share.setZero();
      return;
    }
    // Eigen's exp ends at the smallest double instead of 0.
    for (double& s : share) s = std::exp(s - top);
    size = share.sum();
    for (const double s : share) size_log += s > 0 ? s * std::log(s) : 0;
    size2 = share.squaredNorm();
    x = tokens.x.transpose() * share;
  }
};

// What all tokens together contribute at one u.
struct PromptAt {
  double log_P = 0, psi = 0, once = 0, logs = 0, twice = 0, spread = 0;
  Vector value, rest;  // the rest is without the linear part; it is known if small
  bool small = true;

  explicit PromptAt(Index dv) : value(Vector::Zero(dv)), rest(Vector::Zero(dv)) {}

  void add(const TokenAt& one, double n) {
    log_P += n * one.log_phi;
    psi += n * one.psi;
    once += n * one.once;
    logs += n * one.logs;
    twice += n * one.twice;
    spread += n * one.spread;
    value += n * one.value;
    small = small && one.small;
    if (small) rest += n * one.rest;
  }
  void add(const LadderSums::Sum& sum) {
    log_P += sum.log_phi;
    psi += sum.psi;
    once += sum.once;
    logs += sum.logs;
    twice += sum.twice;
    spread += sum.spread;
    value += sum.value;
    small = false;
  }
  void add(const Given& given, double u) {
    if (given.size == 0) return;
    const double y = std::exp(std::min(u + given.top, 300.0));
    log_P -= y * given.size;
    psi += y * given.size;
    once += y * given.size;
    logs += y * ((u + given.top) * given.size + given.size_log);
    twice += y * y * given.size2;
    value += y * given.x;
  }
};

// Sums over the points of a rule.
struct Totals {
  Totals(std::size_t segments, Index tokens, Index dv)
      : out{.mean = Vector::Zero(dv),
            .weights = Vector::Zero(static_cast<Index>(segments)),
            .given = Vector::Zero(tokens)} {}

  [[nodiscard]] GroupMoments moments(const Given& tokens) && {
    out.given = given * tokens.share;
    out.error = std::abs(total - 1);
    out.log_total = -std::numbers::egamma - u0 - offset;
    out.entropy = std::max(0.0, out.log_total - score);
    return std::move(out);
  }

  GroupMoments out;
  double log_end = kLogEnd;  // of log P
  double u0 = 0;             // about which u is summed
  double total = 0, offset = 0, given = 0, score = 0;
};

// One prompt: its integrands on a lattice of u, or on panels if there are tails.
class Sweep {
 public:
  Sweep(std::vector<Part> parts, const GivenTokens& tokens, double slope, Index dv)
      : parts_(std::move(parts)), given_(tokens, dv), steps_(slope), dv_(dv) {
    set_reach();
    if (slope > 0) climb();
    set_linear();
  }

  GroupMoments integrate(std::size_t segments) {
    Totals sums(segments, given_.share.size(), dv_);
    if (std::any_of(parts_.begin(), parts_.end(),
                    [](const Part& part) { return part.law->tails().has_value(); })) {
      sums.log_end = detail::kTailLogEnd;
      sweep_tails(tail_span(), [&](double u, double weight) { return add(u, weight, sums); });
    } else {
      sweep_lattice(sums);
    }
    return std::move(sums).moments(given_);
  }

 private:
  [[nodiscard]] double u_at(long i) const { return steps_.u * static_cast<double>(i); }

  // Adds the point u of a rule, unless P is below rounding there.
  detail::PointSize add(double u, double weight, Totals& sums) const {
    const PromptAt at = read(u);
    if (!(at.log_P > sums.log_end)) return {at.log_P, at.psi, 0, 0};
    const double P = weight * std::exp(at.log_P);
    const Vector value = at.small ? at.rest + std::exp(u + top_) * linear_ : at.value;
    const double square = P * (at.spread + value.squaredNorm());
    sums.out.mean += P * value;
    sums.out.square += square;
    sums.out.weights2 += P * at.twice;
    for (const Part& part : parts_) {
      sums.out.weights[static_cast<Index>(part.at)] += P * once_of(part, u);
    }
    if (given_.size > 0) sums.given += P * std::exp(u + given_.top);
    sums.total += P * at.once;
    sums.offset += (u - sums.u0) * P * at.once;
    sums.score += P * (at.logs - u * at.once);
    return {at.log_P, at.psi, P * at.once, square};
  }

  void sweep_lattice(Totals& sums) const {
    const long start = middle();
    sums.u0 = u_at(start);
    for (long i = start; i <= last_ && add(u_at(i), steps_.u, sums).log_P > kLogEnd; ++i) {
    }
    for (long i = start - 1; i >= first_ && add(u_at(i), steps_.u, sums).met > kLeftEnd; --i) {
    }
  }

  // Tails begin where those of every law do, and where no token without tails is met, or all are.
  [[nodiscard]] detail::TailSpan tail_span() const {
    constexpr double kAllMet = 7;
    detail::TailSpan out{.low = given_.size > 0 ? given_.top - kAllMet : kInfinity,
                         .high = given_.top + kFaint,
                         .centre_low = kInfinity,
                         .centre_high = -kInfinity,
                         .exponent = [this](double x) { return tail_exponent(x); }};
    for (const Part& part : parts_) {
      const std::optional<LongTails>& tails = part.law->tails();
      const double top = part.top() + std::log(part.n) + kFaint;
      out.low = std::min(out.low, part.bias + (tails ? tails->low : part.law->lowest() - kAllMet));
      out.high = std::max(out.high, tails ? part.bias + tails->high : top);
      if (!tails) continue;
      for (const LongTail& tail : tails->parts) {
        out.centre_low = std::min(out.centre_low, part.bias + tail.middle());
        out.centre_high = std::max(out.centre_high, part.bias + tail.middle());
      }
    }
    return out;
  }
  [[nodiscard]] double tail_exponent(double x) const {
    double most = 0;
    for (const Part& part : parts_) {
      if (!part.law->tails()) continue;
      for (const LongTail& tail : part.law->tails()->parts) {
        most = std::max(most, tail.exponent(x - part.bias));
      }
    }
    return most;
  }

  const TokenAt& token(const Part& part, double u) const {
    const auto [place, fresh] = part.known->try_emplace(u);
    if (fresh) place->second = part.law->at(part.bias + u);
    return place->second;
  }
  // u is a point of the lattice where there are rungs.
  [[nodiscard]] LadderSums::Sum rungs(const Part& part, double u) const {
    const double i = std::round(u / steps_.u);
    return part.ladder->at(i * static_cast<double>(steps_.per_u), part.n);
  }
  [[nodiscard]] double once_of(const Part& part, double u) const {
    return part.ladder ? rungs(part, u).once : part.n * token(part, u).once;
  }

  [[nodiscard]] PromptAt read(double u) const {
    PromptAt out(dv_);
    for (const Part& part : parts_) {
      if (part.ladder) {
        out.add(rungs(part, u));
      } else {
        out.add(token(part, u), part.n);
      }
    }
    out.add(given_, u);
    return out;
  }

  // From where no token is met to where every token of some part is.
  void set_reach() {
    double top = given_.top, bottom = given_.top, n = 1 + given_.size;
    for (const Part& part : parts_) {
      top = std::max(top, part.top());
      bottom = std::max(bottom, part.bias + part.law->lowest());
      n += part.n;
    }
    first_ = static_cast<long>(std::floor((-top - std::log(n) - 50) / steps_.u));
    last_ = static_cast<long>(std::ceil((-bottom + 5) / steps_.u));
  }

  // Tokens of falling log-weights; those that are faint at the leftmost u are left out.
  void climb() {
    const auto faint = static_cast<long>(std::ceil(kFaint / steps_.delta));
    for (Part& part : parts_) {
      if (part.n == 1) continue;
      const double run = part.n * static_cast<double>(steps_.per_token);
      const long below = std::min(faint, static_cast<long>(std::min(run, 1e9)));
      part.ladder.emplace(*part.law, part.bias, steps_.delta, steps_.per_token,
                          first_ * steps_.per_u - below, last_ * steps_.per_u);
    }
  }

  // E[e^{b+s} x] summed over all tokens, in units of e^top.
  void set_linear() {
    top_ = given_.top;
    for (const Part& part : parts_) top_ = std::max(top_, std::log(part.n) + part.top());
    linear_ = Vector::Zero(dv_);
    double size = 0;
    const auto add = [&](double log_weight, const Vector& x, double terms) {
      const double weight = std::exp(log_weight - top_);
      linear_ += weight * x;
      size += weight * terms;
    };
    if (given_.size > 0) add(given_.top, given_.x, given_.x.norm());
    for (const Part& part : parts_) {
      add(std::log(part.n) + part.top(), part.law->linear(), part.law->linear_size());
    }
    if (linear_.norm() <= kRounding * size) linear_.setZero();
  }

  // psi grows with u: the sum over all tokens is about 1 here.
  [[nodiscard]] long middle() const {
    long low = first_, high = last_;
    while (high - low > 1) {
      const long i = low + (high - low) / 2;
      const PromptAt at = read(u_at(i));
      (at.psi < 0.7 && at.log_P > -2 ? low : high) = i;
    }
    return low;
  }

  std::vector<Part> parts_;
  Given given_;
  Steps steps_;
  Index dv_;
  long first_ = 0, last_ = 0;
  Vector linear_;
  double top_ = 0;
};

}  // namespace

struct GroupIntegrals::State {
  Index dv;
  std::vector<TokenNodes> laws = {};
  std::map<std::tuple<std::size_t, double, double>, std::map<double, TokenAt>> known =
      {};  // law, b, step
};

GroupIntegrals::GroupIntegrals(std::vector<ScoreLaw> laws, Index dv)
    : state_(std::make_unique<State>(State{.dv = dv})) {
  for (ScoreLaw& law : laws) {
    check_dimension("exact", "width of a score law", law.width(), dv);
    state_->laws.emplace_back(std::move(law));
  }
}
GroupIntegrals::~GroupIntegrals() = default;
GroupIntegrals::GroupIntegrals(GroupIntegrals&&) noexcept = default;
GroupIntegrals& GroupIntegrals::operator=(GroupIntegrals&&) noexcept = default;

GroupMoments GroupIntegrals::at(const std::vector<GroupSegment>& segments, const GivenTokens& given,
                                double slope) {
  if (!(slope == 0 || (slope >= kMinSlope && std::isfinite(slope)))) {
    throw CapabilityError("exact: a slope of " + to_text(slope) + " is not between " +
                          to_text(kMinSlope) + " and infinity; the direct engine can serve it");
  }
  check_dimension("exact", "given tokens", given.x.rows(), given.log_weight.size());
  const double step = Steps(slope).u;
  std::vector<Part> parts;
  bool tails = false;
  for (std::size_t k = 0; k < segments.size(); ++k) {
    const GroupSegment& s = segments[k];
    if (s.count <= 0 || s.bias == -kInfinity) continue;
    const double bias = slope > 0 ? s.bias - slope * static_cast<double>(s.from) : s.bias;
    parts.push_back({.at = k,
                     .law = &state_->laws.at(s.law),
                     .known = &state_->known[{s.law, bias, step}],
                     .bias = bias,
                     .n = static_cast<double>(s.count)});
    tails = tails || parts.back().law->tails();
  }
  if (slope > 0 && tails) {
    throw CapabilityError(
        "exact: alibi and student tokens have no nodes together; the direct engine can serve them");
  }
  const bool none_given = given.log_weight.size() == 0 || given.log_weight.maxCoeff() == -kInfinity;
  if (parts.empty() && none_given) {
    throw_argument("exact", "prompt", "without a token of finite log-weight", "at least one token");
  }
  return Sweep(std::move(parts), given, slope, state_->dv).integrate(segments.size());
}

}  // namespace esscher
