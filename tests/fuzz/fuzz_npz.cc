#include "esscher/io/npz.h"
#include "tests/fuzz/fuzz.h"

using namespace esscher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::run(data, size, [](Bytes bytes) {
    const auto arrays = parse_npz("fuzz", bytes);
    const auto written = encode_npz(arrays);
    const auto again = parse_npz("again", written);
    fuzz::require(again.size() == arrays.size());
    for (const auto& [name, array] : arrays) fuzz::require(fuzz::same(again.at(name), array));
  });
}
