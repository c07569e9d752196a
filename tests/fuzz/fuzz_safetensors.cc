#include "esscher/io/safetensors.h"
#include "tests/fuzz/fuzz.h"

using namespace esscher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::run(data, size, [](Bytes bytes) {
    const Safetensors read = parse_safetensors("fuzz", bytes);
    const auto written = encode_safetensors(read.tensors, read.metadata);
    const Safetensors again = parse_safetensors("again", written);
    fuzz::require(again.metadata == read.metadata && again.tensors.size() == read.tensors.size());
    for (const auto& [name, array] : read.tensors) {
      fuzz::require(fuzz::same(again.tensors.at(name), array));
      try {
        fuzz::require(to_matrix("fuzz", array).allFinite());
      } catch (const FileError&) {
        // No elements, more than two dimensions, or not finite: refused one by one.
      }
    }
  });
}
