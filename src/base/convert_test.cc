#include "base/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace lockstep {
namespace {

TEST(ConvertElements, ManyAreAsEachAlone) {
  constexpr int64_t kCount = 1000;
  std::vector<float> wide(kCount);
  for (size_t i = 0; i < kCount; ++i)
    wide[i] = std::sin(static_cast<float>(i)) * std::exp(static_cast<float>(i % 90));
  wide[7] = std::nanf("7");
  wide[8] = -std::numeric_limits<float>::infinity();
  for (const DType from : {DType::kF32, DType::kBF16, DType::kF16})
    for (const DType to : {DType::kF32, DType::kBF16, DType::kF16}) {
      // One byte in: nothing need be aligned.
      std::vector<std::byte> source(1 + kCount * sizeof(float)), one(source.size()), many(source.size());
      for (int64_t i = 0; i < kCount; ++i)
        write_element(from, source.data() + 1, i, wide[static_cast<size_t>(i)]);
      for (int64_t i = 0; i < kCount; ++i)
        write_element(to, one.data() + 1, i, read_element(from, source.data() + 1, i));
      convert_elements(from, source.data() + 1, to, many.data() + 1, kCount);
      EXPECT_EQ(one, many) << name_of(from) << " to " << name_of(to);
    }
}

}  // namespace
}  // namespace lockstep
