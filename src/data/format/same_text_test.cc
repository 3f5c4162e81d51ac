// Short texts are equal when all their bytes are, at every length.
#include "data/format/same_text.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

TEST(SameText, EveryByteCounts) {
  for (size_t size = 0; size <= 40; ++size) {
    std::string a(size, 'x');
    for (size_t i = 0; i < size; ++i) a[i] = static_cast<char>('a' + i % 26);
    EXPECT_TRUE(same_text(a, std::string(a)));
    EXPECT_FALSE(same_text(a, a + "x"));
    for (size_t i = 0; i < size; ++i) {
      std::string b = a;
      b[i] ^= 1;
      EXPECT_FALSE(same_text(a, b)) << size << " " << i;
    }
  }
}

}  // namespace
}  // namespace lockstep
