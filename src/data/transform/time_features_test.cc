// Moments read and taken apart.
#include <gtest/gtest.h>

#include "data/testing/test_columns.h"
#include "data/transform/civil_time.h"

namespace lockstep {
namespace {

TEST(CivilTime, ReadsWhatIso8601Writes) {
  EXPECT_EQ(parse_time("1970-01-01"), 0);
  EXPECT_EQ(parse_time("1970-01-02T00:00"), 86400);
  EXPECT_EQ(parse_time("2000-02-29T12:30:15Z"), 951827415);
  EXPECT_EQ(parse_time("2000-02-29 12:30:15.999"), 951827415);
  EXPECT_EQ(parse_time("2000-02-29T14:30:15+02:00"), 951827415);
  EXPECT_EQ(parse_time("2000-02-29T14:30:15+0200"), 951827415);
  EXPECT_EQ(parse_time("2000-02-29T05:30:15-07"), 951827415);
  EXPECT_EQ(parse_time("1969-12-31T23:59:59Z"), -1);
  for (const char* wrong : {"", "2025", "2025-13-01", "2025-02-29", "2025-1-1", "2025-01-01T",
                            "2025-01-01T24:00", "2025-01-01T10", "2025-01-01T10:00:", "2025-01-01T10:00 UTC",
                            "2025-01-01T10:00+2", "2025-01-01x", "01/02/2025", "2025-01-01T10:00Z "})
    EXPECT_FALSE(parse_time(wrong)) << wrong;
}

TEST(CivilTime, IsTakenApart) {
  const CivilTime leap = civil_time(951827415);
  EXPECT_EQ(leap.year, 2000);
  EXPECT_EQ(leap.month, 2);
  EXPECT_EQ(leap.day, 29);
  EXPECT_EQ(leap.day_of_year, 60);
  EXPECT_EQ(leap.weekday, 1);  // a Tuesday
  EXPECT_EQ(leap.hour * 10000 + leap.minute * 100 + leap.second, 123015);
  const CivilTime before = civil_time(-1);
  EXPECT_EQ(before.year, 1969);
  EXPECT_EQ(before.day_of_year, 365);
  EXPECT_EQ(before.weekday, 2);  // the first of 1970 was a Thursday
  EXPECT_EQ(before.second, 59);
}

TEST(TimeFeatures, AreColumnsOfTheirOwn) {
  const TransformOptions options{
      "time_features",
      {{"column", {"t"}}, {"features", {"hour", "weekday", "day", "month", "year", "epoch", "hour_cyclic"}}}};
  const ColumnBlock block = transformed(
      options, {text_column("t", {"2000-02-29T12:30:15Z", std::nullopt, "951827415", "2025-01-06T18:00"})});
  EXPECT_EQ(values_of(block, "t_hour"), "12 - 12 18");
  EXPECT_EQ(values_of(block, "t_weekday"), "1 - 1 0");
  EXPECT_EQ(values_of(block, "t_day"), "29 - 29 6");
  EXPECT_EQ(values_of(block, "t_month"), "2 - 2 1");
  EXPECT_EQ(values_of(block, "t_year"), "2000 - 2000 2025");
  EXPECT_EQ(values_of(block, "t_epoch"), "951827415 - 951827415 1736186400");
  EXPECT_NEAR(block.column("t_hour_cos").as<double>()[0], -1, 1e-15);
  EXPECT_NEAR(block.column("t_hour_sin").as<double>()[3], -1, 1e-15);
  const auto made = make_transform(options)->output({{"t", ValueType::kBytes, 1}});
  EXPECT_TRUE(made[index_of(made, "t_hour_sin")].scaled);
  EXPECT_FALSE(made[index_of(made, "t_hour")].scaled);
}

TEST(TimeFeatures, TakeNumbersInTheirUnit) {
  const TransformOptions options{"time_features",
                                 {{"column", {"t"}}, {"features", {"epoch"}}, {"unit", {"ms"}}}};
  EXPECT_EQ(values_of(transformed(options, {number_column("t", {1500, -1, kNoNumber})}), "t_epoch"),
            "1 -1 -");
  EXPECT_EQ(values_of(transformed(options, {text_column("t", {"1500", "1970-01-01T00:00:09"})}), "t_epoch"),
            "1 9");
}

TEST(TimeFeatures, SayWhatIsNoTime) {
  const TransformOptions options{"time_features", {{"column", {"t"}}, {"features", {"hour"}}}};
  EXPECT_EQ(problem_with([&] { transformed(options, {text_column("t", {"yesterday"})}); }),
            "column 't' has 'yesterday', which is no time; write it as 2025-01-31T08:05:09Z, or as a number "
            "since 1970");
  EXPECT_EQ(problem_with([&] { transformed(options, {number_column("t", {1.7e15})}); }),
            "column 't' has 1700000000000000, which is too far from 1970; is its unit another one?");
  EXPECT_EQ(problem_with([] {
              make_transform({"time_features", {{"column", {"t"}}, {"features", {"huor"}}}});
            }),
            "transform time_features has no feature 'huor'; did you mean hour?");
}

}  // namespace
}  // namespace lockstep
