// Numbers are read in one way or not at all.
#include "job/numbers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

TEST(Numbers, Whole) {
  EXPECT_EQ(read_whole("12"), 12);
  EXPECT_EQ(read_whole("-3"), -3);
  EXPECT_EQ(read_whole("1e6"), 1'000'000);
  EXPECT_EQ(read_whole("2.0"), 2);
  EXPECT_EQ(read_whole("9223372036854775807"), INT64_MAX);
  for (const char* text :
       {"", "2.5", "0x10", "012", "1_000", "9223372036854775808", "1e30", "12 ", "--1", ".nan", "e5"})
    EXPECT_EQ(read_whole(text), std::nullopt) << text;
}

TEST(Numbers, Number) {
  EXPECT_EQ(read_number("1e-3"), 1e-3);
  EXPECT_EQ(read_number(".5"), 0.5);
  EXPECT_EQ(read_number("+2"), 2);
  EXPECT_TRUE(std::isnan(*read_number(".nan")));
  EXPECT_TRUE(std::isinf(*read_number("1e400")));
  for (const char* text : {"", "0,5", "1e", "0x1p3", "abc", "+-1", "."})
    EXPECT_EQ(read_number(text), std::nullopt) << text;
}

TEST(Numbers, Spans) {
  using Unit = StepSpan::Unit;
  EXPECT_EQ(read_span("200"), (StepSpan{Unit::kSteps, 200}));
  EXPECT_EQ(read_span("200 steps"), (StepSpan{Unit::kSteps, 200}));
  EXPECT_EQ(read_span("5%"), (StepSpan{Unit::kFraction, 0.05}));
  EXPECT_EQ(read_span("0.5 %"), (StepSpan{Unit::kFraction, 0.005}));
  EXPECT_EQ(read_span("10000 samples"), (StepSpan{Unit::kSamples, 10000}));
  for (const char* text : {"", "%", "101%", "-1", "0.05", "5 epochs", "1.5 samples", "nan%", "samples"})
    EXPECT_EQ(read_span(text), std::nullopt) << text;
}

TEST(Numbers, Bytes) {
  EXPECT_EQ(read_bytes("4096"), 4096);
  EXPECT_EQ(read_bytes("1.5GiB"), int64_t{3} << 29);
  EXPECT_EQ(read_bytes("2 GB"), 2'000'000'000);
  for (const char* text : {"", "GiB", "5 gigs", "-1MB", "1e30TB", "nanMB"})
    EXPECT_EQ(read_bytes(text), std::nullopt) << text;
}

}  // namespace
}  // namespace lockstep
