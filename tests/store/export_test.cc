// Exports of rows that have every type of column, absent and not finite values included.
#include "esscher/store/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "esscher/io/npz.h"
#include "tests/store/temporary.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;
using testing::Temporary;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Inner {
  double x = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("x", row.x, "", "a number of an inner row");
  }
};

struct Full {
  bool ok = false;
  std::int64_t n = 0;
  double x = 0;
  std::string text = {};
  Length L{1};
  Vector r = {};
  Matrix U = {};
  std::vector<Inner> inner = {};
  std::optional<double> maybe = {};
  std::optional<std::int64_t> maybe_n = {};
  std::optional<std::string> maybe_text = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("ok", row.ok, "", "a truth");
    column("n", row.n, "tokens", "a count");
    column("x", row.x, "", "a real");
    column("text", row.text, "", "a word");
    column("L", row.L, "tokens", "a length");
    column("r", row.r, "", "a vector");
    column("U", row.U, "", "a matrix");
    column("inner", row.inner, "", "rows of another type");
    column("maybe", row.maybe, "", "a real that may be absent");
    column("maybe_n", row.maybe_n, "", "a count that may be absent");
    column("maybe_text", row.maybe_text, "", "a word that may be absent");
  }
};

struct Other {
  double x = 0;
  bool late = false;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("x", row.x, "", "another real");
    column("late", row.late, "", "only here");
  }
};

// Two cells of one type, one of another.
Run filled(const Temporary& tmp) {
  auto run = Run::create_or_resume(tmp / "a", {"study", "a = 1\n", 7});
  Full first{.ok = true, .n = 3, .x = 0.1, .text = "say \"hi\"\n", .L = Length(12)};
  first.r = Vector{{1.5, -kInf}};
  first.U = Matrix{{1, 2}, {3, kNaN}};
  first.inner = {{.x = 1}, {.x = kInf}};
  first.maybe = 2;
  first.maybe_n = 4;
  first.maybe_text = "there";
  Full second{.n = -1, .x = kInf, .text = "s", .L = Length::infinity()};
  second.r = Vector{{7}};
  second.U = Matrix(0, 2);
  run.commit("a,b", std::vector<Full>{first});
  run.commit("c", std::vector<Full>{second});
  run.commit("d", std::vector<Other>{{.x = kNaN, .late = true}});
  return run;
}

TEST(Export, CsvIsFlatExactAndQuoted) {
  const Temporary tmp;
  EXPECT_EQ(export_csv(filled(tmp)),
            "cell,ok,n,x,text,L,r_0,r_1,U_0_0,U_0_1,U_1_0,U_1_1,maybe,maybe_n,maybe_text,late\r\n"
            "\"a,b\",true,3,0.1,\"say \"\"hi\"\"\n\",12,1.5,-inf,1.0,2.0,3.0,nan,2.0,4,there,\r\n"
            "c,false,-1,inf,s,inf,7.0,,,,,,,,,\r\n"
            "d,,,nan,,,,,,,,,,,,true\r\n");
}

TEST(Export, JsonSaysWhatIsNotFinite) {
  const Temporary tmp;
  const Json json = parse_json("export", export_json(filled(tmp)));
  EXPECT_EQ(json.at("columns"), (Json{"cell", "ok", "n", "x", "text", "L", "r", "U", "inner",
                                      "maybe", "maybe_n", "maybe_text", "late"}));
  const Json& first = json.at("rows").at(0);
  EXPECT_EQ(first.at("r"), (Json{1.5, nullptr}));
  EXPECT_EQ(first.at("U"), (Json{{1.0, 2.0}, {3.0, nullptr}}));
  EXPECT_EQ(first.at("inner").at(1), (Json{{"x", nullptr}, {"not_finite", {{"x", "inf"}}}}));
  const Json& second = json.at("rows").at(1);
  EXPECT_TRUE(second.at("x").is_null());
  EXPECT_EQ(second.at("not_finite").at("x"), "inf");
  EXPECT_EQ(second.at("L"), "inf");
  EXPECT_FALSE(second.contains("maybe")) << "absent is left out";
  EXPECT_EQ(json.at("rows").at(2).at("not_finite").at("x"), "nan");
  const Json& x = json.at("declared").at(3);
  EXPECT_EQ(x.at("name"), "x");
  EXPECT_EQ(x.at("type"), "real");
  EXPECT_EQ(x.at("meaning"), "a real; or another real");
}

TEST(Export, NpzHasOneArrayPerFlatColumn) {
  const Temporary tmp;
  const std::string bytes = export_npz(filled(tmp));
  const auto arrays = parse_npz("export", std::as_bytes(std::span(bytes)));
  EXPECT_EQ(arrays.at("x").dtype, DType::f64);
  EXPECT_EQ(arrays.at("x").shape, std::vector<std::int64_t>{3});
  EXPECT_EQ(arrays.at("x").at(0), 0.1);
  EXPECT_EQ(arrays.at("x").at(1), kInf);
  EXPECT_TRUE(std::isnan(arrays.at("x").at(2)));
  EXPECT_EQ(arrays.at("L").dtype, DType::f64);
  EXPECT_EQ(arrays.at("L").at(0), 12);
  EXPECT_EQ(arrays.at("L").at(1), kInf);
  EXPECT_TRUE(std::isnan(arrays.at("L").at(2))) << "absent";
  EXPECT_EQ(arrays.at("n").dtype, DType::f64) << "absent in one row";
  EXPECT_EQ(arrays.at("U_1_0").at(0), 3);
  EXPECT_TRUE(std::isnan(arrays.at("U_1_0").at(1)));
  EXPECT_FALSE(arrays.contains("inner")) << "tables are in the JSON only";
  EXPECT_EQ(arrays.at("maybe_text").at(0), 0);
  EXPECT_EQ(arrays.at("maybe_text").at(1), -1) << "absent";
  const Bytes names = arrays.at("cell.text").data;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(names.data()), names.size()),
            std::string("a,bc\0\0d\0\0", 9));
}

TEST(Export, WholeColumnsKeepTheirTypesInNpz) {
  const Temporary tmp;
  auto run = Run::create_or_resume(tmp / "a", {"study", "a = 1\n", 7});
  run.commit("a", std::vector<Full>{{.ok = true, .n = 3}, {.n = 5}});
  const std::string bytes = export_npz(run);
  const auto arrays = parse_npz("export", std::as_bytes(std::span(bytes)));
  EXPECT_EQ(arrays.at("n").dtype, DType::i64);
  EXPECT_EQ(arrays.at("n").at(1), 5);
  EXPECT_EQ(arrays.at("ok").dtype, DType::boolean);
  EXPECT_EQ(arrays.at("ok").at(0), 1);
  EXPECT_EQ(arrays.at("maybe_n").dtype, DType::f64);
}

struct Wrong {
  std::string x;
  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("x", row.x, "", "a word of the same name");
  }
};

struct Cell {
  double cell = 0;
  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("cell", row.cell, "", "a name that exports need");
  }
};

TEST(Run, RefusesTwoTypesForOneColumn) {
  const Temporary tmp;
  auto run = filled(tmp);
  const auto text =
      testing::message_of<ArgumentError>([&] { run.commit("e", std::vector<Wrong>{{.x = "a"}}); });
  EXPECT_THAT(text, HasSubstr("column \"x\" is of type text, expected real"));
  EXPECT_THROW(run.commit("e", std::vector<Cell>{{}}), ArgumentError);
  EXPECT_EQ(run.status().total, 3) << "nothing half-declared may stay";
}

}  // namespace
}  // namespace esscher
