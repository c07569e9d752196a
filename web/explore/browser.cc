// What takes another form in a browser: there are no files and no presets, the SIMD kernels have one target,
// and flows are integrated by our own Runge-Kutta alone.
#include <hwy/aligned_allocator.h>

#include <cstdlib>

#include "esscher/base/error.h"
#include "esscher/config/presets.h"
#include "esscher/io/file.h"
#include "esscher/io/matrix.h"
#include "esscher/simd/targets.h"
#include "esscher/training/integrator.h"
#include "esscher/training/runge_kutta.h"

// Of Highway's own library, which has no WebAssembly build, its containers ask for memory.
namespace hwy {

void* AllocateAlignedBytes(std::size_t size, AllocPtr, void*) {
  return std::aligned_alloc(HWY_ALIGNMENT,
                            (size + HWY_ALIGNMENT - 1) / HWY_ALIGNMENT * HWY_ALIGNMENT);
}
void FreeAlignedBytes(const void* memory, FreePtr, void*) { std::free(const_cast<void*>(memory)); }

}  // namespace hwy

namespace esscher {

Matrix read_matrix(const std::filesystem::path& path) {
  throw FileError("the explorer reads no files, and was asked for " + path.string());
}
std::string read_text(const std::filesystem::path& path) {
  throw FileError("the explorer reads no files, and was asked for " + path.string());
}

void allow_preset(const Table&) {}

void simd::obey_environment() {}

struct Integrator::Impl {
  RungeKutta own;
};

Integrator::Integrator(Field f, const VectorView& y0, double rtol, double atol, Stepping stepping) {
  if (stepping != Stepping::runge_kutta) {
    throw CapabilityError("flow.stepping: the explorer has runge-kutta only");
  }
  impl_ = std::make_unique<Impl>(Impl{RungeKutta(std::move(f), y0, rtol, atol)});
}
Integrator::~Integrator() = default;
Integrator::Integrator(Integrator&&) noexcept = default;
Integrator& Integrator::operator=(Integrator&&) noexcept = default;
bool Integrator::step(double t_stop) { return impl_->own.step(t_stop); }
double Integrator::t() const { return impl_->own.t(); }
Vector Integrator::y() const { return impl_->own.y(); }
Vector Integrator::at(double time) const { return impl_->own.at(time); }
std::int64_t Integrator::steps() const { return impl_->own.steps(); }
std::int64_t Integrator::evaluations() const { return impl_->own.evaluations(); }
const std::string& Integrator::message() const { return impl_->own.message(); }

}  // namespace esscher
