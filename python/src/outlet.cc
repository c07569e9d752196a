#include "outlet.h"

#include <pybind11/stl.h>

#include "esscher/report/report.h"

namespace esscher::python {

namespace py = pybind11;

Outlet::Outlet(const py::object& given) {
  if (given.is_none()) return;
  const auto options = py::cast<py::dict>(given);
  progress_ = options["progress"];
  if (options["out"].is_none()) return;
  directory_ = py::cast<std::string>(options["out"]);
  shard_ = py::cast<std::string>(options["shard"]);
  info_ = {.verb = py::cast<std::string>(options["verb"]),
           .config_toml = py::cast<std::string>(options["config"]),
           .seed = py::cast<std::uint64_t>(options["seed"])};
  if (!options["ranks"].is_none()) ranks_ = std::make_unique<PythonRanks>(options["ranks"]);
}

Run* Outlet::run() {
  if (directory_.empty()) return nullptr;
  if (run_) return &*run_;
  try {
    run_.emplace(Run::create_or_resume(directory_, info_, ranks_.get()));
  } catch (const std::exception& error) {
    if (ranks_ && ranks_->rank() == 0) ranks_->fail(error.what());
    throw;
  }
  return &*run_;
}

ExecOptions Outlet::options() {
  ExecOptions options;
  options.shard = Shard::parse(shard_);
  options.stop = current_stop_flag();
  options.progress = [this](const CellProgress& now) {
    meter_.done = now.done;
    meter_.total = now.total;
  };
  return options;
}

bool Outlet::fill(const TextCells& cells) { return run_text_cells(*run(), cells, options()); }

void Outlet::keep(const std::function<Page()>& page) {
  if (run() == nullptr) return;
  const Page made = page();
  set_page(*run(), made);
  if (run()->is_writer()) write_report(*run(), made, run()->directory() / "report.html");
}

void Outlet::keep_document(const char* name, const std::function<Json()>& document) {
  if (run() != nullptr) run()->set_document(name, document());
}

void Outlet::close() {
  if (run_) run_->close();
  run_.reset();
}

void Outlet::tell() {
  const std::pair<std::int64_t, std::int64_t> now{meter_.done, meter_.total};
  if (now == told_ || now.second == 0) return;
  told_ = now;
  progress_(now.first, now.second);
}

}  // namespace esscher::python
