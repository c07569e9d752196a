#include "esscher/heads/window.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "esscher/base/error.h"

namespace esscher {
namespace {

// Keys enter the sums in pieces whose copies stay in the cache: whole chunks of a long prompt would
// spend most of the time on fresh memory. The bits do not depend on the pieces.
constexpr Index kPiece = 256;

// A rotary tail looks at no more positions than this, evenly spaced.
constexpr Index kRotaryPositions = 512;

void check(Index dk, Index dv, const WindowOptions& options) {
  const std::string where = "WindowedHead";
  const auto at_least = [&](const char* what, Index value, Index least) {
    if (value < least) {
      throw_argument(where, what, std::to_string(value), "at least " + std::to_string(least));
    }
  };
  at_least("dk", dk, 1);
  at_least("dv", dv, 1);
  at_least("sinks", options.sinks, 0);
  at_least("heavy", options.heavy, 0);
  at_least("window", options.window, std::max<Index>(1, options.sinks));
  if (options.tail == Tail::mixture) {
    if (!options.mixture) throw_argument(where, "mixture", "none", "a mixture of keys");
    check_dimension(where, "mixture", options.mixture->means.front().size(), dk);
  }
  if (options.tail == Tail::rotary) {
    if (!options.rotary) throw_argument(where, "rotary", "none", "base and pairs of the rotation");
    check_rotary(where, *options.rotary, dk);
    if (options.heavy > 0) {
      throw_argument(where, "heavy", std::to_string(options.heavy),
                     "0 with a rotary tail, whose keys are consecutive");
    }
  }
}

Index component_count(const WindowOptions& options) {
  return options.tail == Tail::mixture ? options.mixture->size() : 1;
}

// Middles of equal stretches of `count` keys that start at key `begin`.
std::vector<Index> spaced_keys(Index begin, Index count) {
  const Index points = std::min(count, kRotaryPositions);
  std::vector<Index> keys;
  for (Index i = 0; i < points; ++i) keys.push_back(begin + (2 * i + 1) * count / (2 * points));
  return keys;
}

// One component per row of a law with one component per query.
ScoreMixture stacked(const std::vector<ScoreMixture>& rows) {
  const auto k = static_cast<Index>(rows.size());
  const Index dv = rows.front().mean.cols();
  ScoreMixture out{Vector::Constant(k, 1.0 / static_cast<double>(k)),
                   Vector(k),
                   Vector(k),
                   Matrix(k, dv),
                   Matrix(k, dv),
                   Vector(k)};
  for (Index i = 0; i < k; ++i) {
    const ScoreMixture& one = rows[i];
    out.mu(i) = one.mu(0);
    out.tau2(i) = one.tau2(0);
    out.mean.row(i) = one.mean.row(0);
    out.cross.row(i) = one.cross.row(0);
    out.variance(i) = one.variance(0);
  }
  return out;
}

}  // namespace

Vector combine(Tail tail, const WindowParts& parts) {
  if (!(parts.count > 0) || tail == Tail::none) return parts.exact.value;
  return merge(parts.exact, tail_value(tail, parts.scores, parts.count)).value;
}

WindowedHead::WindowedHead(Index dk, Index dv, WindowOptions options)
    : dk_(dk), dv_(dv), options_(std::move(options)) {
  check(dk, dv, options_);
  keys_ = Matrix::Zero(options_.window + options_.heavy, dk);
  values_ = Matrix::Zero(options_.window + options_.heavy, dv);
  slots_.resize(static_cast<std::size_t>(keys_.rows()));
}

void WindowedHead::push(const MatrixView& keys, const MatrixView& values) {
  check_dimension("WindowedHead::push", "keys (columns)", keys.cols(), dk_);
  check_dimension("WindowedHead::push", "values (columns)", values.cols(), dv_);
  check_dimension("WindowedHead::push", "values (rows)", values.rows(), keys.rows());
  check_finite("WindowedHead::push", "keys", keys);
  check_finite("WindowedHead::push", "values", values);
  for (Index first = 0; first < keys.rows(); first += kPiece) {
    const Index rows = std::min(kPiece, keys.rows() - first);
    push_piece(keys.middleRows(first, rows), values.middleRows(first, rows));
  }
}

void WindowedHead::push_piece(const MatrixView& keys, const MatrixView& values) {
  // Of a long piece, the keys that only pass through the window go to the tail together.
  const Index n = keys.rows();
  Index at = 0;
  const Index fill = options_.window;
  while (at < n && (count_ < fill || options_.heavy > 0 || n - at <= recent() || recent() == 0)) {
    push_one(keys.row(at), values.row(at));
    ++at;
  }
  if (at == n) return;
  // The ring leaves in the order of its keys, from the oldest slot round to it, then all of the
  // piece but its last keys, which are the new ring.
  const Index ring = recent();
  const Index oldest = (count_ - options_.sinks) % ring;
  const auto leave_slots = [&](Index slot, Index rows, Index first_key) {
    if (rows == 0) return;
    add_to_tail(keys_.middleRows(options_.sinks + slot, rows),
                values_.middleRows(options_.sinks + slot, rows), first_key);
  };
  leave_slots(oldest, ring - oldest, count_ - ring);
  leave_slots(0, oldest, count_ - oldest);
  const Index through = n - at - ring;
  add_to_tail(keys.middleRows(at, through), values.middleRows(at, through), count_);
  count_ += n - at;
  for (Index i = 0; i < ring; ++i) {
    const Index key = count_ - ring + i;
    const Index slot = options_.sinks + (key - options_.sinks) % ring;
    keys_.row(slot) = keys.row(n - ring + i);
    values_.row(slot) = values.row(n - ring + i);
    slots_[static_cast<std::size_t>(slot)] = {.key = key};
  }
}

void WindowedHead::push_one(const VectorView& key, const VectorView& value) {
  const Index number = count_++;
  if (number >= options_.window && recent() == 0) {  // sinks only: the key does not stay
    add_to_tail(key.transpose(), value.transpose(), number);
    return;
  }
  const Index slot =
      number < options_.window ? number : options_.sinks + (number - options_.sinks) % recent();
  if (number >= options_.window) leave(slot);
  used_ = std::max(used_, slot + 1);
  keys_.row(slot) = key.transpose();
  values_.row(slot) = value.transpose();
  slots_[static_cast<std::size_t>(slot)] = {.key = number};
}

// The key of a slot of the ring becomes a heavy key or part of the tail.
void WindowedHead::leave(Index slot) {
  const Index heavy_used = used_ - options_.window;
  Index loser = slot;
  if (options_.heavy > 0) {
    const auto weight = [&](Index i) {
      const Slot& s = slots_[static_cast<std::size_t>(i)];
      return s.queries > 0 ? s.weight / s.queries : 0.0;
    };
    Index place = options_.window;
    if (heavy_used < options_.heavy) {
      place += heavy_used;
      used_ = place + 1;
      loser = -1;
    } else {
      for (Index i = place; i < used_; ++i) {
        if (weight(i) < weight(place)) place = i;
      }
      if (weight(slot) > weight(place)) loser = place;
    }
    if (loser == place) {
      add_to_tail(keys_.row(place), values_.row(place), slots_[place].key);
    }
    if (loser != slot) {
      keys_.row(place) = keys_.row(slot);
      values_.row(place) = values_.row(slot);
      slots_[static_cast<std::size_t>(place)] = slots_[static_cast<std::size_t>(slot)];
      return;
    }
  }
  add_to_tail(keys_.row(slot), values_.row(slot), slots_[static_cast<std::size_t>(slot)].key);
}

void WindowedHead::add_to_tail(const MatrixView& keys, const MatrixView& values, Index first_key) {
  if (options_.tail == Tail::none) return;
  if (options_.tail == Tail::rotary) {
    add_moments(rotated(*options_.rotary, keys, first_key, true), values, first_key);
  } else {
    add_moments(keys, values, first_key);
  }
}

void WindowedHead::add_moments(const MatrixView& keys, const MatrixView& values, Index first_key) {
  if (!tail_) {
    tail_.emplace(component_count(options_), keys.row(0), values.row(0));
    tail_begin_ = first_key;
  }
  const Matrix k = keys.rowwise() - tail_->origin_k().transpose();
  const Matrix v = values.rowwise() - tail_->origin_v().transpose();
  if (options_.tail == Tail::mixture) {
    tail_->add(k, v, responsibilities(*options_.mixture, keys));
  } else {
    tail_->add(k, v);
  }
}

Vector WindowedHead::exact_scores(const VectorView& a) const {
  const bool shifted = tail_ && options_.tail != Tail::rotary;
  const double shift = shifted ? a.dot(tail_->origin_k()) : 0.0;
  return (keys_.topRows(used_) * a).array() - shift;
}

WindowParts WindowedHead::parts(const VectorView& a) const {
  check_dimension("WindowedHead", "a", a.size(), dk_);
  if (count_ == 0)
    throw CapabilityError("WindowedHead: no key has come yet, expected at least one");
  WindowParts out;
  const Vector s = exact_scores(a);
  const double top = s.maxCoeff();
  const Vector w = (s.array() - top).exp();
  out.exact = {.log_mass = top + std::log(w.sum()),
               .value = values_.topRows(used_).transpose() * (w / w.sum())};
  if (!tail_) return out;
  out.count = tail_->count();
  if (options_.tail == Tail::rotary) {
    const Matrix turned =
        turned_back(*options_.rotary, a, spaced_keys(tail_begin_, static_cast<Index>(out.count)));
    out.scores = stacked(tail_->scores(turned, 0));
    out.scores.mu += turned * tail_->origin_k();
  } else {
    const double floor = options_.tail == Tail::mixture ? options_.mixture->floor : 0.0;
    out.scores = tail_->scores(a.transpose(), floor).front();
  }
  out.scores.mean.rowwise() += tail_->origin_v().transpose();
  return out;
}

Vector WindowedHead::operator()(const VectorView& a) const {
  return combine(options_.tail, parts(a));
}

Vector WindowedHead::operator()(const VectorView& a, Tail tail) const {
  const bool special = tail == Tail::mixture || tail == Tail::rotary ||
                       options_.tail == Tail::mixture || options_.tail == Tail::rotary;
  if (tail != Tail::none && tail != options_.tail && (special || options_.tail < tail) &&
      !(options_.tail == Tail::gaussian && tail == Tail::finite)) {
    throw CapabilityError("WindowedHead: moments of a tail \"" + std::string(name(options_.tail)) +
                          "\" do not serve a tail \"" + std::string(name(tail)) + "\"");
  }
  return combine(tail, parts(a));
}

Vector WindowedHead::attend(const VectorView& a) {
  const WindowParts now = parts(a);
  const bool empty = !(now.count > 0) || options_.tail == Tail::none;
  const TailValue all =
      empty ? now.exact : merge(now.exact, tail_value(options_.tail, now.scores, now.count));
  const Vector s = exact_scores(a);
  for (Index i = 0; i < used_; ++i) {
    Slot& slot = slots_[static_cast<std::size_t>(i)];
    slot.weight += std::exp(s(i) - all.log_mass);
    slot.queries += 1;
  }
  return all.value;
}

Index WindowedHead::state() const {
  const Index pair = dk_ + dv_ + (options_.heavy > 0 ? 2 : 0);  // and how the key was weighed
  const Index moments = tail_ ? tail_state(options_.tail, dk_, dv_, component_count(options_)) : 0;
  return used_ * pair + moments;
}

std::size_t WindowedHead::bytes() const {
  const std::size_t window =
      static_cast<std::size_t>(keys_.size() + values_.size()) * 8 + slots_.size() * sizeof(Slot);
  // Per component: sums of k, v, kk' (the whole square), kv', two numbers; and the origins.
  const Index one = dk_ + dv_ + dk_ * dk_ + dk_ * dv_ + 2;
  const Index moments = tail_ ? component_count(options_) * one + dk_ + dv_ + 1 : 0;
  return window + static_cast<std::size_t>(moments) * 8;
}

}  // namespace esscher
