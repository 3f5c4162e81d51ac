// CRC-32C: published values, and both ways of computing it agree at every length.
#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

TEST(Crc32c, GivesPublishedValues) {
  // RFC 3720, B.4.
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(""), 0U);
}

TEST(Crc32c, TheInstructionEqualsThePortableLoop) {
  std::string bytes;
  for (uint32_t i = 0; i < 2000; ++i) {
    EXPECT_EQ(crc32c(bytes), crc32c_portable(bytes)) << i;
    // From an odd address as well.
    EXPECT_EQ(crc32c(std::string_view(bytes).substr(bytes.empty() ? 0 : 1)),
              crc32c_portable(std::string_view(bytes).substr(bytes.empty() ? 0 : 1)));
    bytes += static_cast<char>((i * 2654435761U) >> 24);
  }
}

}  // namespace
}  // namespace lockstep
