#include "esscher/json/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "esscher/base/error.h"

namespace esscher {
namespace {

TEST(Json, IsStrict) {
  EXPECT_EQ(parse_json("t", R"({"a":[1,2]})")["a"][1], 2);
  EXPECT_THROW(parse_json("t", R"({"a":1,"a":2})"), FileError);
  EXPECT_THROW(parse_json("t", R"({"a":1} x)"), FileError);
  EXPECT_THROW(parse_json("t", std::string(1000, '[')), FileError);
  EXPECT_EQ(dump(number(std::nan(""))), "null");
}

// JSON has no infinity: the value is null and a status beside it says what it was.
TEST(Json, ANumberThatIsNotFiniteIsNullWithAStatus) {
  Json object;
  put(object, "x", 1.5);
  put(object, "y", -std::numeric_limits<double>::infinity());
  put(object, "z", std::nan(""));
  EXPECT_EQ(dump(object), R"({"x":1.5,"y":null,"not_finite":{"y":"-inf","z":"nan"},"z":null})");
}

}  // namespace
}  // namespace esscher
