#include "esscher/io/npy.h"
#include "tests/fuzz/fuzz.h"

using namespace esscher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::run(data, size, [](Bytes bytes) {
    const Array array = parse_npy("fuzz", bytes);
    const auto written = encode_npy(array);
    fuzz::require(fuzz::same(parse_npy("again", written), array));
    const Matrix all = to_matrix("fuzz", array);
    fuzz::require(all.allFinite());
    const Index half = all.rows() / 2;
    fuzz::require(to_matrix("fuzz", array, half, all.rows() - half) ==
                  Matrix(all.bottomRows(all.rows() - half)));
  });
}
