#include "run/settle_codec.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using enum GradientCodec;

TEST(SettleCodec, NothingIsTriedWhereLittleIsExposed) {
  EXPECT_FALSE(is_worth_trying({kNone, 100, 2}));
  EXPECT_TRUE(is_worth_trying({kNone, 100, 30}));
  const CodecVerdict verdict = judge({{kNone, 100, 2}});
  EXPECT_EQ(verdict.codec, kNone);
  EXPECT_NE(verdict.reason.find("2 of 100 ms"), std::string::npos) << verdict.reason;
}

TEST(SettleCodec, TheShortestStepWinsAndACoarserCodecMustBeWorthIt) {
  EXPECT_EQ(judge({{kNone, 100, 50}, {kBf16, 75, 25}, {kInt8, 60, 10}}).codec, kInt8);
  EXPECT_EQ(judge({{kNone, 100, 50}, {kBf16, 75, 25}, {kInt8, 74, 10}}).codec, kBf16);
  EXPECT_EQ(judge({{kNone, 100, 50}, {kBf16, 99, 25}, {kInt8, 110, 10}}).codec, kNone);
  EXPECT_EQ(judge({{kNone, 100, 50}, {kBf16, 120, 25}, {kInt8, 90, 10}}).codec, kInt8);
}

}  // namespace
}  // namespace lockstep
