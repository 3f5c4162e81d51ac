#include "async/frame.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep::async {
namespace {

std::string refusal(const AsyncHeader& header) {
  try {
    decode(encode(header));
  } catch (const CommError& error) {
    return error.what();
  }
  return "";
}

TEST(AsyncFrame, DecodesWhatItEncodes) {
  const AsyncHeader header{.kind = AsyncKind::kStage,
                           .index = 3,
                           .payload = kMostPiece,
                           .lease = uint64_t{1} << 40,
                           .attempt = 7,
                           .offset = uint64_t{1} << 33};
  EXPECT_EQ(decode(encode(header)), header);
}

TEST(AsyncFrame, RefusesMoreThanMayBeSent) {
  EXPECT_NE(refusal({.kind = AsyncKind::kStage, .payload = kMostPiece + 1}), "");
  EXPECT_NE(refusal({.kind = AsyncKind::kStage, .payload = 0}), "");
  EXPECT_NE(refusal({.kind = AsyncKind::kSetup, .payload = kMostSetup + 1}), "");
  EXPECT_NE(refusal({.kind = AsyncKind::kWork, .payload = kMostSaid + 1}), "");
  EXPECT_NE(refusal({.kind = AsyncKind::kReady, .payload = 1}), "");
  EXPECT_NE(refusal({.kind = AsyncKind::kPush, .payload = sizeof(PushFacts) - 1}), "");
  EXPECT_NE(refusal({.kind = AsyncKind::kReady, .lease = ~uint64_t{0}}), "");
  EXPECT_NE(refusal({.kind = static_cast<AsyncKind>(99)}), "");
  EXPECT_EQ(refusal({.kind = AsyncKind::kEnd}), "");
}

TEST(AsyncFrame, RefusesPayloadsOfAnotherSize) {
  const std::array<std::byte, 8> bytes{};
  EXPECT_THROW(apply_order(bytes), CommError);
  EXPECT_THROW(push_facts(bytes), CommError);
  EXPECT_EQ(give_order(bytes), GiveOrder{});
}

}  // namespace
}  // namespace lockstep::async
