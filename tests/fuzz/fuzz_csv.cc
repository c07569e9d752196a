#include "esscher/io/csv.h"
#include "tests/fuzz/fuzz.h"

using namespace esscher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::run(data, size, [](Bytes bytes) {
    const Matrix matrix = parse_csv("fuzz", bytes);
    fuzz::require(matrix.allFinite() && matrix.size() > 0);
    const std::string written = encode_csv(matrix);
    fuzz::require(parse_csv("again", as_bytes(written)) == matrix);
  });
}
