// Transforms of numbers: values, missing values, errors, and constants that do not depend on blocks.
#include <gtest/gtest.h>

#include <cmath>

#include "data/testing/test_columns.h"

namespace lockstep {
namespace {

using Settings = std::map<std::string, std::vector<std::string>>;

std::string of_numbers(const std::string& name, Settings settings, const std::vector<double>& numbers) {
  settings["columns"] = {"x"};
  return values_of(transformed({name, settings}, {number_column("x", numbers)}), "x");
}

std::string problem_of_numbers(const std::string& name, Settings settings,
                               const std::vector<double>& numbers) {
  return problem_with([&] { of_numbers(name, std::move(settings), numbers); });
}

TEST(Clip, KeepsNumbersWithinItsBounds) {
  EXPECT_EQ(of_numbers("clip", {{"low", {"-1"}}, {"high", {"2.5"}}}, {-3, 0, kNoNumber, 9}), "-1 0 - 2.5");
  EXPECT_EQ(of_numbers("clip", {}, {-3, 9}), "-3 9");
  EXPECT_NE(problem_of_numbers("clip", {{"low", {"3"}}, {"high", {"2"}}}, {1}), "");
}

TEST(LogTransform, TakesThreeKindsOfLogarithm) {
  EXPECT_EQ(of_numbers("log", {}, {0, kNoNumber, std::expm1(1.0)}), "0 - 1");
  EXPECT_EQ(of_numbers("log", {{"method", {"signed"}}}, {-std::expm1(1.0), 0}), "-1 0");
  EXPECT_EQ(of_numbers("log", {{"method", {"log"}}}, {1, std::exp(3.0)}), "0 3");
  EXPECT_EQ(problem_of_numbers("log", {}, {1, -2}),
            "column 'x' is -2, and log1p needs numbers of at least 0; use method: signed or clip it first");
  EXPECT_EQ(problem_of_numbers("log", {{"method", {"log"}}}, {0}),
            "column 'x' is 0, and log needs numbers above 0; use method: log1p or clip it first");
}

TEST(Cast, MakesNumbersOfTextAndTextOfNumbers) {
  const auto cast = [](const std::string& to, const BlockColumn& column,
                       const std::string& invalid = "stop") {
    return values_of(
        transformed({"cast", {{"columns", {"x"}}, {"to", {to}}, {"invalid", {invalid}}}}, {column}), "x");
  };
  EXPECT_EQ(cast("f64", text_column("x", {"1.5", " 2 ", std::nullopt, "NA"})), "1.5 2 - -");
  EXPECT_EQ(cast("i64", text_column("x", {"9223372036854775807", "-3", "1e3"})),
            "9223372036854775807 -3 1000");
  EXPECT_EQ(cast("text", number_column("x", {7, 0.1, kNoNumber})), "7.0 0.1 -");
  EXPECT_EQ(cast("i32", number_column("x", {-7, 8})), "-7 8");
  EXPECT_EQ(cast("f32", number_column("x", {0.1})), "0.1");
  EXPECT_EQ(cast("i32", text_column("x", {"7", "2.5", "x", "3000000000"}), "missing"), "7 - - -");
  EXPECT_EQ(problem_with([&] {
              cast("i32", text_column("x", {"1", "2.5"}));
            }),
            "column 'x' has '2.5', which is not a whole number that fits; with invalid: missing it counts as "
            "missing");
  EXPECT_EQ(
      problem_with([&] { cast("f64", text_column("x", {"much"})); }),
      "column 'x' has 'much', which is not a number that fits; with invalid: missing it counts as missing");
  EXPECT_EQ(problem_with([&] { cast("int", text_column("x", {"1"})); }),
            "transform cast: to is 'int'; write i32, i64, f32, f64 or text");
}

TEST(Normalise, ScalesByTheTrainingRecords) {
  EXPECT_EQ(of_numbers("normalise", {}, {1, 3, kNoNumber}), "-1 1 -");
  EXPECT_EQ(of_numbers("normalise", {{"method", {"min_max"}}}, {-2, 2, 0, kNoNumber}), "0 1 0.5 -");
  EXPECT_EQ(of_numbers("normalise", {}, {4, 4}), "0 0");  // no deviation to divide by
  EXPECT_EQ(problem_of_numbers("normalise", {}, {kNoNumber}),
            "transform normalise: column 'x' has no value in the training records; leave it out");
}

TEST(Bucketise, CountsTheBoundariesBelow) {
  const Settings given{{"boundaries", {"0", "10", "20"}}};
  EXPECT_EQ(of_numbers("bucketise", given, {-1, 0, 9.5, 10, 1000, kNoNumber}), "1 2 2 3 4 -");
  const auto transform =
      make_transform({"bucketise", {{"columns", {"x"}}, {"boundaries", {"0", "10", "20"}}}});
  EXPECT_EQ(transform->output({{"x", ValueType::kF64, 1}})[0].ids, 5);
  EXPECT_EQ(transform->begin_fit(), nullptr);
  EXPECT_EQ(problem_of_numbers("bucketise", {{"boundaries", {"3", "3"}}}, {1}),
            "transform bucketise: boundary 3 comes after 3; write them in ascending order");
  EXPECT_EQ(problem_of_numbers("bucketise", {}, {1}),
            "transform bucketise needs boundaries or quantiles, one of the two");
}

TEST(Bucketise, DividesTheTrainingRecordsEvenly) {
  std::vector<double> numbers;
  for (int i = 0; i < 1000; ++i) numbers.push_back(i * 7919 % 1000);
  auto transform = make_transform({"bucketise", {{"columns", {"x"}}, {"quantiles", {"4"}}}});
  fit_blocks(*transform, {block_of({number_column("x", numbers)})});
  EXPECT_EQ(transform->fitted(), "column x: 250 500 750\n");
  // Mostly one value: fewer buckets, none of them empty.
  EXPECT_EQ(of_numbers("bucketise", {{"quantiles", {"4"}}}, {0, 0, 0, 0, 0, 0, 0, 5}), "1 1 1 1 1 1 1 1");
  EXPECT_EQ(of_numbers("bucketise", {{"quantiles", {"4"}}}, {0, 0, 0, 0, 0, 5, 5, 5}), "1 1 1 1 1 2 2 2");
}

TEST(Fill, PutsAValueWhereThereIsNone) {
  EXPECT_EQ(of_numbers("fill", {{"value", {"-1"}}}, {2, kNoNumber}), "2 -1");
  EXPECT_EQ(of_numbers("fill", {{"method", {"mean"}}}, {2, kNoNumber, 7}), "2 4.5 7");
  EXPECT_EQ(of_numbers("fill", {{"method", {"median"}}}, {2, kNoNumber, 7, 100}), "2 7 7 100");
  const ColumnBlock flagged = transformed({"fill", {{"columns", {"x"}}, {"value", {"0"}}, {"flag", {"yes"}}}},
                                          {number_column("x", {2, kNoNumber})});
  EXPECT_EQ(values_of(flagged, "x_missing"), "0 1");
  const ColumnBlock text = transformed({"fill", {{"columns", {"x"}}, {"value", {"none"}}, {"as", {"y"}}}},
                                       {text_column("x", {"a", std::nullopt, "NA", ""})});
  EXPECT_EQ(values_of(text, "y"), "a none none none");
  EXPECT_EQ(problem_of_numbers("fill", {{"value", {"none"}}}, {1}),
            "transform fill: column 'x' holds numbers (f64), and 'none' is none");
  EXPECT_EQ(problem_of_numbers("fill", {{"method", {"mode"}}}, {1}),
            "transform fill: method is 'mode'; write mean or median");
  EXPECT_EQ(problem_of_numbers("fill", {}, {1}), "transform fill needs value or method, one of the two");
}

// Constants survive being written down, and nobody takes those of other columns.
TEST(FittedNumbers, AreReadBackWithEveryBit) {
  const std::vector<double> numbers{0.1, 1e-9, 12345.678, -3, 1.0 / 3};
  for (const TransformOptions& options :
       {TransformOptions{"normalise", {{"columns", {"x"}}}},
        TransformOptions{"fill", {{"columns", {"x"}}, {"method", {"median"}}}},
        TransformOptions{"bucketise", {{"columns", {"x"}}, {"quantiles", {"3"}}}}}) {
    auto fitted = make_transform(options);
    fit_blocks(*fitted, {block_of({number_column("x", numbers)})});
    auto read = make_transform(options);
    read->set_fitted(fitted->fitted());
    EXPECT_EQ(read->fitted(), fitted->fitted());
    ColumnBlock one = block_of({number_column("x", numbers)}), other = one;
    fitted->apply({}, one);
    read->apply({}, other);
    EXPECT_EQ(values_of(one, "x"), values_of(other, "x"));
    for (const char* wrong :
         {"", "column y: 1 2\n", "column x: 1 two\n", "column x: 1 2\nmore\n", "column x: 1 2"})
      EXPECT_THROW(read->set_fitted(wrong), UserError) << options.name << ": " << wrong;
  }
}

}  // namespace
}  // namespace lockstep
