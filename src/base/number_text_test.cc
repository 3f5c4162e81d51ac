#include "base/number_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep {
namespace {

TEST(ShortNumber, WritesWhatAPersonWould) {
  EXPECT_EQ(short_number(1e-4), "1e-4");
  EXPECT_EQ(short_number(8e-4), "8e-4");
  EXPECT_EQ(short_number(2.8284e-4), "2.83e-4");
  EXPECT_EQ(short_number(0.05), "0.05");
  EXPECT_EQ(short_number(0.009999), "0.01");
  EXPECT_EQ(short_number(12), "12");
  EXPECT_EQ(short_number(999.6), "1e3");
  EXPECT_EQ(short_number(1200, 4), "1200");
  EXPECT_EQ(short_number(-3.5), "-3.5");
  EXPECT_EQ(short_number(1e20), "1e20");
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(-0.0), "0");
  EXPECT_EQ(short_number(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(short_number(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(short_number(-std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(NumberText, Bytes) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1000), "1000 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(int64_t{1} << 62), "4096 PiB");
}

}  // namespace
}  // namespace lockstep
