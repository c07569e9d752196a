// esscher._esscher: the thin, private module below the package. Names, types, defaults and
// documentation are in python/esscher/*.py.
#include <pybind11/pybind11.h>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/base/version.h"
#include "parts.h"

namespace {

namespace py = pybind11;
using namespace esscher;

void raise(const char* name, const std::exception& error) {
  const py::object type = py::module_::import("esscher.errors").attr(name);
  PyErr_SetString(type.ptr(), error.what());
}

// The most derived type first.
void translate(std::exception_ptr pointer) {
  try {
    if (pointer) std::rethrow_exception(pointer);
  } catch (const DimensionError& error) {
    raise("DimensionError", error);
  } catch (const DomainError& error) {
    raise("DomainError", error);
  } catch (const ArgumentError& error) {
    raise("ArgumentError", error);
  } catch (const CapabilityError& error) {
    raise("CapabilityError", error);
  } catch (const FileError& error) {
    raise("FileError", error);
  } catch (const ConfigError& error) {
    raise("ConfigError", error);
  } catch (const RuntimeFailure& error) {
    raise("RuntimeFailure", error);
  } catch (const Error& error) {
    raise("Error", error);
  }
}

}  // namespace

PYBIND11_MODULE(_esscher, m) {
  py::register_exception_translator(&translate);
  m.attr("version") = kVersion;
  m.attr("commit") = build_commit();
  m.def("set_thread_count", &set_thread_count, py::arg("threads"));
  m.def("thread_count", &thread_count);
  python::bind_random(m);
  python::bind_measure(m);
  python::bind_fit(m);
  python::bind_attention(m);
  python::bind_prompt(m);
  python::bind_concentration(m);
  python::bind_scaling(m);
  python::bind_icl(m);
  python::bind_models(m);
  python::bind_layers(m);
  python::bind_train(m);
  python::bind_presets(m);
  python::bind_heads(m);
  python::bind_windowed_head(m);
  python::bind_head_plan(m);
  python::bind_runs(m);
  python::bind_charts(m);
  python::bind_sweep(m);
  python::bind_gradients(m);
}
