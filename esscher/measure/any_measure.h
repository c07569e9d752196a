// A value that holds a Measure of any type, for combinators, configuration and Python. Copies share
// the immutable object. A class of a user that models Measure is held like the built-in ones.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include "esscher/measure/empirical.h"
#include "esscher/measure/measure.h"

namespace esscher {

class AnyMeasure {
 public:
  template <class M>
  requires(!std::same_as<std::decay_t<M>, AnyMeasure> && Measure<std::decay_t<M>>)
      AnyMeasure(M&& measure)  // NOLINT: implicit, because every measure is an AnyMeasure
      : object_(std::make_shared<const Model<std::decay_t<M>>>(std::forward<M>(measure))) {}

  // The concrete type, or nullptr.
  template <class T>
  [[nodiscard]] const T* as() const {
    const auto* model = dynamic_cast<const Model<T>*>(object_.get());
    return model == nullptr ? nullptr : &model->measure;
  }

  [[nodiscard]] Index dim() const { return object_->dim(); }
  [[nodiscard]] Length cardinality() const { return object_->cardinality(); }
  [[nodiscard]] Vector mean() const { return object_->mean(); }
  [[nodiscard]] Matrix second_moment() const { return object_->second_moment(); }
  [[nodiscard]] Vector second_moment_times(const VectorView& v) const {
    return object_->second_moment_times(v);
  }
  [[nodiscard]] double log_mgf(const VectorView& a) const { return object_->log_mgf(a); }
  [[nodiscard]] double centred_log_mgf(const VectorView& a) const {
    return object_->centred_log_mgf(a);
  }
  [[nodiscard]] Vector tilted_mean(const VectorView& a) const { return object_->tilted_mean(a); }
  [[nodiscard]] Vector mean_shift(const VectorView& a) const { return object_->mean_shift(a); }
  [[nodiscard]] Matrix tilted_cov(const VectorView& a) const { return object_->tilted_cov(a); }
  [[nodiscard]] Vector tilted_cov_times(const VectorView& a, const VectorView& v) const {
    return object_->tilted_cov_times(a, v);
  }
  [[nodiscard]] HigherCumulants higher_cumulants(const VectorView& a, const MatrixView& W,
                                                 const MatrixView& Y) const {
    return object_->higher_cumulants(a, W, Y);
  }
  [[nodiscard]] Empirical sample(const Stream& stream, Index n) const {
    return object_->sample(stream, n);
  }
  [[nodiscard]] double sub_gaussian() const { return object_->sub_gaussian(); }
  [[nodiscard]] bool strictly_sub_gaussian() const { return object_->strictly_sub_gaussian(); }
  [[nodiscard]] std::string name() const { return object_->name(); }

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual Index dim() const = 0;
    virtual Length cardinality() const = 0;
    virtual Vector mean() const = 0;
    virtual Matrix second_moment() const = 0;
    virtual Vector second_moment_times(const VectorView& v) const = 0;
    virtual double log_mgf(const VectorView& a) const = 0;
    virtual double centred_log_mgf(const VectorView& a) const = 0;
    virtual Vector tilted_mean(const VectorView& a) const = 0;
    virtual Vector mean_shift(const VectorView& a) const = 0;
    virtual Matrix tilted_cov(const VectorView& a) const = 0;
    virtual Vector tilted_cov_times(const VectorView& a, const VectorView& v) const = 0;
    virtual HigherCumulants higher_cumulants(const VectorView& a, const MatrixView& W,
                                             const MatrixView& Y) const = 0;
    virtual Empirical sample(const Stream& stream, Index n) const = 0;
    virtual double sub_gaussian() const = 0;
    virtual bool strictly_sub_gaussian() const = 0;
    virtual std::string name() const = 0;
  };

  template <class M>
  struct Model final : Interface {
    explicit Model(M m) : measure(std::move(m)) {}
    Index dim() const override { return measure.dim(); }
    Length cardinality() const override { return measure.cardinality(); }
    Vector mean() const override { return measure.mean(); }
    Matrix second_moment() const override { return measure.second_moment(); }
    Vector second_moment_times(const VectorView& v) const override {
      return esscher::second_moment_times(measure, v);
    }
    double log_mgf(const VectorView& a) const override { return measure.log_mgf(a); }
    double centred_log_mgf(const VectorView& a) const override {
      return esscher::centred_log_mgf(measure, a);
    }
    Vector tilted_mean(const VectorView& a) const override { return measure.tilted_mean(a); }
    Vector mean_shift(const VectorView& a) const override {
      return esscher::mean_shift(measure, a);
    }
    Matrix tilted_cov(const VectorView& a) const override { return measure.tilted_cov(a); }
    Vector tilted_cov_times(const VectorView& a, const VectorView& v) const override {
      return measure.tilted_cov_times(a, v);
    }
    HigherCumulants higher_cumulants(const VectorView& a, const MatrixView& W,
                                     const MatrixView& Y) const override {
      return esscher::higher_cumulants(measure, a, W, Y);
    }
    Empirical sample(const Stream& stream, Index n) const override {
      return measure.sample(stream, n);
    }
    double sub_gaussian() const override { return measure.sub_gaussian(); }
    bool strictly_sub_gaussian() const override { return esscher::strictly_sub_gaussian(measure); }
    std::string name() const override { return measure.name(); }
    M measure;
  };

  std::shared_ptr<const Interface> object_;
};

static_assert(Measure<AnyMeasure>);
static_assert(Measure<Empirical>);

}  // namespace esscher
