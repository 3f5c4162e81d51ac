// Filters: what they mean, what they are refused for, and that bounds never rule out a record that matches.
#include "data/select/filter.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "base/error.h"
#include "data/transform/transform.h"

namespace lockstep {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// amount f64, count i64, country text; the last record misses all of them.
ColumnBlock block() {
  ColumnBlock block;
  block.reset(
      {{"amount", ValueType::kF64, 1}, {"count", ValueType::kI64, 1}, {"country", ValueType::kBytes, 1}});
  block.records = 5;
  block.columns[0].as<double>() = {-1.5, 0, 2.5, kNaN, 0};
  block.columns[1].as<int64_t>() = {1, 2, 9007199254740993, 4, 0};
  block.columns[2].as<std::string_view>() = {"DE", "FR", "it's", "NA", ""};
  for (size_t c : {0, 1, 2}) block.columns[c].missing = {0, 0, 0, 0, 1};
  return block;
}

std::string marks(const std::string& text) {
  std::string found;
  for (const uint8_t mark : Filter(text).matches(block())) found += mark != 0 ? '1' : '0';
  return found;
}

std::string refusal(const std::string& text) {
  try {
    Filter{text};
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Filter, ComparesNumbersAndTexts) {
  EXPECT_EQ(marks("amount > 0"), "00100");
  EXPECT_EQ(marks("amount >= 0"), "01100");
  EXPECT_EQ(marks("amount != 0"), "10100");
  EXPECT_EQ(marks("amount <= -1.5"), "10000");
  EXPECT_EQ(marks("amount < 2.5e0"), "11000");
  EXPECT_EQ(marks("country == 'DE'"), "10000");
  EXPECT_EQ(marks("country > 'DF'"), "01100");
  EXPECT_EQ(marks("country == 'it''s'"), "00100");
  EXPECT_EQ(marks("country in ('FR', 'DE')"), "11000");
  EXPECT_EQ(marks("count in (1, 4.0, 7)"), "10010");
  EXPECT_EQ(marks("country not in ('FR', 'DE')"), "00100");
  EXPECT_EQ(marks("count == '4'"), "00010");
}

TEST(Filter, WholeNumbersAreComparedExactly) {
  EXPECT_EQ(marks("count == 9007199254740993"), "00100");
  EXPECT_EQ(marks("count == 9007199254740992"), "00000");
  EXPECT_EQ(marks("count > 9007199254740992"), "00100");
  EXPECT_EQ(marks("count > 0.5"), "11110");
  ColumnBlock texts;
  texts.reset(Filter("x == 9007199254740993").columns());
  texts.records = 4;
  texts.columns[0].as<std::string_view>() = {"9007199254740992", "9007199254740993", "9.5", "NA"};
  EXPECT_EQ(Filter("x == 9007199254740993").matches(texts), (std::vector<uint8_t>{0, 1, 0, 0}));
  EXPECT_EQ(Filter("x < 9007199254740993").matches(texts), (std::vector<uint8_t>{1, 0, 1, 0}));
}

TEST(Filter, WhatIsMissingMatchesNoComparison) {
  EXPECT_EQ(marks("amount is missing"), "00011");
  EXPECT_EQ(marks("country is missing"), "00011");
  EXPECT_EQ(marks("count is not missing"), "11110");
  EXPECT_EQ(marks("not amount > 0"), "11011");
  EXPECT_EQ(marks("country != 'DE'"), marks("country not in ('DE')"));
  EXPECT_EQ(marks("not country in ('FR', 'DE')"), "00111");
  EXPECT_EQ(marks("amount > 0 or amount <= 0"), "11100");
}

TEST(Filter, NotBindsBeforeAndBeforeOr) {
  EXPECT_EQ(marks("not amount > 0 and count < 3"), "11000");
  EXPECT_EQ(marks("count == 4 or count == 1 and amount > 0"), "00010");
  EXPECT_EQ(marks("(count == 4 or count == 1) and amount < 0"), "10000");
  EXPECT_EQ(marks("NOT (count == 4 OR count == 1) AND `amount` IS NOT MISSING"), "01100");
}

TEST(Filter, HasOneTextForAllSpellings) {
  EXPECT_EQ(Filter("a>1 and  (b in('x','it''s'))").text(), "(`a` > 1 and `b` in ('x', 'it''s'))");
  EXPECT_EQ(Filter(" ( `a` > +1.0e0 AND b in ('x', 'it''s') ) ").text(),
            Filter("a>1 and b in('x','it''s')").text());
  for (const char* text : {"a > 1.5 or not b is missing", "not (a == 1 and b < -2)", "`odd name` != 'x'"})
    EXPECT_EQ(Filter(Filter(text).text()).text(), Filter(text).text());
}

TEST(Filter, NamesItsColumnsOnce) {
  const std::vector<BlockField> expected = {
      {"a", ValueType::kF64, 1}, {"b", ValueType::kBytes, 1}, {"c", ValueType::kBytes, 1}};
  EXPECT_EQ(Filter("a > 1 and b == 'x' and a < 3 and c is missing and a is missing").columns(), expected);
}

TEST(Filter, SaysWhereItCannotBeUnderstood) {
  EXPECT_EQ(refusal(""),
            "at character 1 of the filter: it ends where a comparison such as amount > 0 is expected");
  EXPECT_EQ(refusal("amount >"),
            "at character 9 of the filter: it ends where a number or a text in single quotes is expected");
  EXPECT_EQ(refusal("amount = 3"), "at character 8 of the filter: equality is written ==");
  EXPECT_EQ(refusal("a == \"x\""), "at character 6 of the filter: texts stand in single quotes, as in 'DE'");
  EXPECT_EQ(refusal("a == 'x"), "at character 6 of the filter: this text is not closed by another '");
  EXPECT_EQ(refusal("a == 1 b"),
            "at character 8 of the filter: b stands where and, or, or the end is expected");
  EXPECT_EQ(refusal("(a == 1"), "at character 8 of the filter: it ends where and, or, or ) is expected");
  EXPECT_EQ(refusal("a in ()"),
            "at character 7 of the filter: ) stands where a number or a text in single quotes is expected");
  EXPECT_EQ(refusal("a in (1, 'x')"),
            "at character 10 of the filter: a list holds numbers or texts, not both");
  EXPECT_EQ(refusal("a == 1.2.3"), "at character 6 of the filter: 1.2.3 is not a number");
  EXPECT_EQ(refusal("a == 1e999"), "at character 6 of the filter: 1e999 is not a number");
  EXPECT_EQ(refusal("a == 18446744073709551615"),
            "at character 6 of the filter: 18446744073709551615 has more than 64 bits; compare the text, "
            "which is exact: '18446744073709551615'");
  EXPECT_EQ(refusal("a && b"), "at character 3 of the filter: both is written and");
  EXPECT_EQ(refusal("missing == 1"),
            "at character 1 of the filter: missing stands where the name of a column is expected");
  EXPECT_EQ(refusal("a == 1 and a == 'x'"),
            "the filter compares column 'a' with numbers and with texts; use one of them");
  EXPECT_NE(refusal(std::string(200, '(')), "");
  EXPECT_NE(refusal(std::string(70000, ' ')), "");
}

TEST(Filter, TextsComparedWithNumbersMustBeNumbers) {
  ColumnBlock texts;
  texts.reset({{"x", ValueType::kBytes, 1}});
  texts.records = 3;
  texts.columns[0].as<std::string_view>() = {"3", "NA", "three"};
  EXPECT_THROW(Filter("x > 1").matches(texts), BadValue);
  EXPECT_EQ(Filter("x > 1").matches(texts, true), (std::vector<uint8_t>{1, 0, 0}));
}

}  // namespace
}  // namespace lockstep
