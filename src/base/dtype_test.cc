#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep {
namespace {

TEST(DType, NamesParseBack) {
  for (const DType dtype :
       {DType::kF32, DType::kBF16, DType::kF16, DType::kI32, DType::kI64, DType::kU8, DType::kBool})
    EXPECT_EQ(parse_dtype(name_of(dtype)), dtype);
  EXPECT_FALSE(parse_dtype("f64").has_value());
}

TEST(DType, Bf16RoundsToNearestEven) {
  EXPECT_EQ(to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(to_bf16(1.00390625f), 0x3f80);  // halfway between two neighbours: the even one
  EXPECT_EQ(to_bf16(1.01171875f), 0x3f82);  // halfway again: up to the even one
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(to_bf16(std::nanf("7")), 0x7fc0);
}

TEST(DType, EveryF16IsKeptExactly) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = from_f16(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    EXPECT_EQ(to_f16(value), bits) << value;
  }
}

TEST(DType, F16RoundsOverflowAndSubnormals) {
  EXPECT_EQ(to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(to_f16(5.9604645e-08f), 0x0001);
  EXPECT_EQ(to_f16(2.9802322e-08f), 0x0000);  // half of the smallest: to even
  EXPECT_EQ(to_f16(-1.0f), 0xbc00);
}

}  // namespace
}  // namespace lockstep
