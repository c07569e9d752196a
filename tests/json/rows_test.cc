// A row goes into the store and comes back with every value as it was, or an error names the column.
#include "esscher/json/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

enum class Colour { red, green };
constexpr auto enum_names(Colour) {
  return EnumNames<Colour, 2>{"colour", {{{Colour::red, "red"}, {Colour::green, "green"}}}};
}

struct PartRow {
  Index k = 0;
  double x = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("k", row.k, "", "position");
    column("x", row.x, "", "value");
  }
};

struct FullRow {
  bool truth = false;
  std::int64_t n = 0;
  double x = 0;
  std::string text;
  Colour colour = Colour::red;
  Length length = Length::infinity();
  std::optional<double> maybe;
  std::vector<double> list;
  Matrix matrix = Matrix(0, 0);
  std::vector<PartRow> parts;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("truth", row.truth, "", "a truth");
    column("n", row.n, "tokens", "an integer");
    column("x", row.x, "", "a real number");
    column("text", row.text, "", "a text");
    column("colour", row.colour, "", "a word");
    column("length", row.length, "tokens", "a length");
    column("maybe", row.maybe, "", "a number that may be absent");
    column("list", row.list, "", "numbers");
    column("matrix", row.matrix, "", "a matrix");
    column("parts", row.parts, "", "rows of their own");
  }
};

std::string stored(const FullRow& row) {
  return rows_text(table_of(std::span<const FullRow>(&row, 1)));
}

FullRow read_back(const std::string& text) {
  return rows_of<FullRow>("run, cell a", parse_rows("run, cell a", columns_of<FullRow>(), text))
      .at(0);
}

// Any double, often one that is not finite.
double any_double() {
  const auto kind = *rc::gen::inRange(0, 6);
  if (kind == 0) return std::numeric_limits<double>::infinity();
  if (kind == 1) return -std::numeric_limits<double>::infinity();
  if (kind == 2) return std::nan("");
  return *rc::gen::arbitrary<double>();
}

RC_GTEST_PROP(Rows, ComeBackAsTheyWere, ()) {
  FullRow row;
  row.truth = *rc::gen::arbitrary<bool>();
  row.n = *rc::gen::arbitrary<std::int64_t>();
  row.x = any_double();
  row.text = *rc::gen::container<std::string>(rc::gen::inRange(' ', '~'));
  row.colour = *rc::gen::element(Colour::red, Colour::green);
  if (*rc::gen::arbitrary<bool>()) row.length = *rc::gen::inRange<std::int64_t>(0, 1000000);
  if (*rc::gen::arbitrary<bool>()) row.maybe = any_double();
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) row.list.push_back(any_double());
  const Index side = *rc::gen::inRange(0, 3);
  row.matrix = Matrix(side, side);
  for (double& x : row.matrix.reshaped()) x = any_double();
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) row.parts.push_back({i, any_double()});
  const std::string text = stored(row);
  RC_ASSERT(stored(read_back(text)) == text);  // NaN is not equal to itself, its text is
}

TEST(Rows, InfinityAndNaNAreNotAbsent) {
  FullRow row;
  row.x = std::numeric_limits<double>::infinity();
  row.maybe = std::nan("");
  const FullRow back = read_back(stored(row));
  EXPECT_EQ(back.x, row.x);
  ASSERT_TRUE(back.maybe.has_value());
  EXPECT_TRUE(std::isnan(*back.maybe));
  EXPECT_FALSE(read_back(stored(FullRow{})).maybe.has_value());
  const Json document = row_json(row);
  EXPECT_TRUE(document["x"].is_null());
  EXPECT_EQ(document["not_finite"]["x"], "inf");
}

// Rows come from files that another version wrote: nothing is guessed.
TEST(Rows, AnErrorNamesTheCellAndTheColumn) {
  const auto error = [](const std::string& from, const std::string& to) {
    std::string text = stored(FullRow{});
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return message_of<FileError>([&] { return read_back(text); });
  };
  EXPECT_THAT(error("\"x\":0.0,", ""), HasSubstr("run, cell a: column \"x\" is missing"));
  EXPECT_THAT(error("\"x\":0.0", "\"x\":\"one\""), HasSubstr("column \"x\" holds \"one\""));
  EXPECT_THAT(error("\"n\":0", "\"n\":0.5"), HasSubstr("column \"n\" holds 0.5"));
  EXPECT_THAT(error("\"red\"", "\"rad\""), HasSubstr("did you mean red?"));
  EXPECT_THAT(error("\"list\":[]", "\"list\":[[1],[2,3]]"), HasSubstr("column \"list\""));
}

TEST(Rows, AColumnSurvivesItsDeclaration) {
  for (const Column& column : columns_of<FullRow>()) {
    EXPECT_EQ(column_from_json("x", column_json(column)), column) << column.name;
  }
}

}  // namespace
}  // namespace esscher
