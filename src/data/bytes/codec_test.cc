// Every codec gives back what it took, and nobody gets memory for what the stored bytes cannot hold.
#include "data/bytes/codec.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

class CodecOf : public ::testing::TestWithParam<Codec> {};

TEST_P(CodecOf, RoundTrip) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "record " + std::to_string(i * i);
  for (const std::string& bytes : {text, std::string("x"), std::string(1 << 20, '\0')}) {
    const std::string stored = compress(GetParam(), bytes);
    EXPECT_TRUE(may_unpack_to(GetParam(), stored, bytes.size()));
    std::string out(bytes.size(), '?');
    ASSERT_TRUE(decompress(GetParam(), stored, out));
    EXPECT_EQ(out, bytes);
  }
}

TEST_P(CodecOf, AFewBytesCannotClaimAll) {
  const std::string stored = compress(GetParam(), "a short text, too short for all that");
  EXPECT_FALSE(may_unpack_to(GetParam(), stored, size_t{1} << 31));
  EXPECT_FALSE(may_unpack_to(GetParam(), stored.substr(0, 1), size_t{256} << 20));
  std::string out(stored.size() + 1000, '?');
  EXPECT_FALSE(decompress(GetParam(), stored, out));
}

INSTANTIATE_TEST_SUITE_P(All, CodecOf,
                         ::testing::Values(Codec::kNone, Codec::kSnappy, Codec::kGzip, Codec::kZstd,
                                           Codec::kLz4),
                         [](const auto& codec) { return std::string(name_of(codec.param)); });

}  // namespace
}  // namespace lockstep
