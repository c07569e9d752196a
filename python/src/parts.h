// Each file of this folder binds one folder of the library into the module _esscher.
#pragma once

#include <pybind11/pybind11.h>

namespace esscher::python {

void bind_random(pybind11::module_& m);
void bind_measure(pybind11::module_& m);
void bind_fit(pybind11::module_& m);
void bind_attention(pybind11::module_& m);
void bind_prompt(pybind11::module_& m);
void bind_concentration(pybind11::module_& m);
void bind_scaling(pybind11::module_& m);
void bind_icl(pybind11::module_& m);
void bind_models(pybind11::module_& m);
void bind_layers(pybind11::module_& m);
void bind_train(pybind11::module_& m);
void bind_presets(pybind11::module_& m);
void bind_heads(pybind11::module_& m);
void bind_windowed_head(pybind11::module_& m);
void bind_head_plan(pybind11::module_& m);
void bind_runs(pybind11::module_& m);
void bind_charts(pybind11::module_& m);
void bind_sweep(pybind11::module_& m);
void bind_gradients(pybind11::module_& m);

}  // namespace esscher::python
