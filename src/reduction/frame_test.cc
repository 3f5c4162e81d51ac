#include "reduction/frame.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "reduction/terms.h"

namespace lockstep::reduction {
namespace {

FrameHeader sums() {
  return {.kind = FrameKind::kPartials,
          .type = SumType::kF32,
          .partials = 2,
          .chunk = 7,
          .collective = uint64_t{1} << 40,
          .elements = 1024,
          .payload = 2 * 4096};
}

TEST(ReductionFrame, WhatWasEncodedIsDecoded) {
  EXPECT_EQ(decode(encode(sums())), sums());
  const FrameHeader welcome{.kind = FrameKind::kWelcome, .chunk = 8};
  EXPECT_EQ(decode(encode(welcome)), welcome);
}

TEST(ReductionFrame, WhatAnnouncesMoreThanMayBeSentIsRefused) {
  const auto refused = [](auto change) {
    FrameHeader header = sums();
    change(header);
    EXPECT_THROW(decode(encode(header)), CommError);
  };
  refused([](FrameHeader& header) { header.payload = 4096; });
  refused([](FrameHeader& header) { header.partials = 0; });
  refused([](FrameHeader& header) { header.elements = 0; });
  refused([](FrameHeader& header) {
    header.partials = 1;
    header.elements = kLongestChunk / 4 + 1;
    header.payload = header.elements * 4;
  });
  refused([](FrameHeader& header) { header.kind = FrameKind::kRoot; });
  refused([](FrameHeader& header) {
    header.kind = FrameKind::kJoin;
    header.payload = kMostText + 1;
  });
  refused([](FrameHeader& header) { header.kind = static_cast<FrameKind>(99); });
  refused([](FrameHeader& header) { header.type = static_cast<SumType>(9); });
  HeaderBytes garbage{};
  EXPECT_THROW(decode(garbage), CommError);
}

TEST(ReductionTerms, AreReadBackAndChecked) {
  SessionTerms terms{.session = "s", .rank = 2, .ranks = 3, .host = 1, .leaves = 7, .ends = {4, 7}};
  const SessionTerms again = parse_terms(to_text(terms));
  EXPECT_TRUE(again.same_run(terms));
  EXPECT_EQ(again.rank, 2);
  EXPECT_EQ(again.host, 1);
  const auto refused = [&](auto change) {
    SessionTerms other = terms;
    change(other);
    EXPECT_THROW(parse_terms(to_text(other)), CommError);
  };
  refused([](SessionTerms& one) { one.session.clear(); });
  refused([](SessionTerms& one) { one.rank = 3; });
  refused([](SessionTerms& one) { one.host = 2; });
  refused([](SessionTerms& one) { one.ends = {7, 4}; });
  refused([](SessionTerms& one) { one.ends = {4, 6}; });
  refused([](SessionTerms& one) { one.ends = {}; });
  refused([](SessionTerms& one) { one.leaves = int64_t{1} << 40; });
  for (const char* text : {"", "{", "[]", "{\"session\": 3}", "null"})
    EXPECT_THROW(parse_terms(text), CommError);
}

}  // namespace
}  // namespace lockstep::reduction
