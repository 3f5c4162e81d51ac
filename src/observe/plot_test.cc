#include "observe/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace lockstep {
namespace {

std::vector<double> count_to(int n) {
  std::vector<double> values;
  for (int i = 1; i <= n; ++i) values.push_back(i);
  return values;
}

TEST(Plot, ARisingLineInAscii) {
  PlotOptions options;
  options.unicode = false;
  options.width = 10;
  options.height = 5;
  options.x_name = "step";
  EXPECT_EQ(line_plot(count_to(10), count_to(10), options),
            "10 +        .'\n"
            "   |      .'\n"
            "   |    .'\n"
            "   |  .'\n"
            " 1 +.'\n"
            "   ++--------+\n"
            "    1       10  step\n");
}

TEST(Plot, ALogarithmicAxis) {
  PlotOptions options;
  options.unicode = false;
  options.width = 10;
  options.height = 5;
  options.log_x = true;
  EXPECT_EQ(line_plot(std::vector<double>{1e-7, 1e-6, 1e-5, 1e-4}, count_to(4), options),
            "4 +        .'\n"
            "  |      .'\n"
            "  |    .'\n"
            "  |  .'\n"
            "1 +.'\n"
            "  ++--------+\n"
            "   1e-7  1e-4\n");
}

TEST(Plot, ARisingLineInBraille) {
  PlotOptions options;
  options.width = 8;
  options.height = 2;
  EXPECT_EQ(line_plot(count_to(16), count_to(16), options),
            "16 ┤    ⣀⠤⠒⠉\n"
            " 1 ┤⣀⠤⠒⠉\n"
            "   └┬──────┬\n"
            "    1     16\n");
}

TEST(Plot, WhatIsNotFiniteBreaksTheLine) {
  PlotOptions options;
  options.unicode = false;
  options.width = 9;
  options.height = 2;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> y{0, 0, 0, nan, std::numeric_limits<double>::infinity(), nan, 1, 1, 1};
  EXPECT_EQ(line_plot(count_to(9), y, options),
            "1 +      '''\n"
            "0 +...\n"
            "  ++-------+\n"
            "   1       9\n");
}

TEST(Plot, ALevelLineIsLabelledOnce) {
  PlotOptions options;
  options.unicode = false;
  options.width = 8;
  options.height = 3;
  EXPECT_EQ(line_plot(count_to(8), std::vector<double>(8, 2e-4), options),
            "     |\n"
            "2e-4 +''''''''\n"
            "     |\n"
            "     ++------+\n"
            "      1      8\n");
  options.height = 2;
  EXPECT_EQ(line_plot(count_to(8), std::vector<double>(8, 2e-4), options).substr(0, 14), "2e-4 +........");
}

TEST(Plot, NearEndsGetMoreDigits) {
  const std::vector<double> y{1.0001, 1.0002};
  const std::string text = line_plot(count_to(2), y);
  EXPECT_NE(text.find("1.0002"), std::string::npos);
  EXPECT_NE(text.find("1.0001"), std::string::npos);
}

TEST(Plot, ExtremesDoNotBreakIt) {
  EXPECT_EQ(line_plot({}, {}), "(nothing to plot)\n");
  EXPECT_EQ(line_plot(std::vector<double>{1}, std::vector<double>{NAN}), "(nothing to plot)\n");
  EXPECT_FALSE(line_plot(count_to(1), count_to(1)).empty());
  const double huge = std::numeric_limits<double>::max();
  EXPECT_FALSE(line_plot(count_to(2), std::vector<double>{-huge, huge}).empty());
}

}  // namespace
}  // namespace lockstep
