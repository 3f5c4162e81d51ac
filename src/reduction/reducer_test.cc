#include "reduction/reducer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "comm/tree_testing.h"

namespace lockstep::reduction {
namespace {

constexpr uint32_t kElements = 3000;

SessionTerms terms_of(int64_t leaves, int hosts) {
  const LeafSplit split = LeafSplit::search(leaves, hosts);
  SessionTerms terms{.session = "s", .ranks = hosts, .leaves = leaves};
  for (int host = 0; host < hosts; ++host) terms.ends.push_back(split.range(host).end);
  return terms;
}

Contribution part_of(const SessionTerms& terms, int host, uint32_t chunk) {
  const auto sums = testing::partial_sums<float>(terms.split(), host, kElements);
  const size_t bytes = kElements * sizeof(float);
  Bytes data(new std::byte[bytes * sums.size()]);
  for (size_t i = 0; i < sums.size(); ++i) std::memcpy(data.get() + i * bytes, sums[i].data(), bytes);
  return {.host = host,
          .rank = host,
          .header = {.kind = FrameKind::kPartials,
                     .partials = static_cast<uint16_t>(sums.size()),
                     .chunk = chunk,
                     .collective = 1,
                     .elements = kElements,
                     .payload = static_cast<uint32_t>(bytes * sums.size())},
          .data = data};
}

TEST(Reducer, TheRootIsTheTreesInWhateverOrderPartsCome) {
  for (const int64_t leaves : {3, 7, 8, 16})
    for (int hosts = 1; hosts <= 3; ++hosts) {
      const SessionTerms terms = terms_of(leaves, hosts);
      const auto expected = testing::expected_root<float>(leaves, kElements);
      for (int first = 0; first < hosts; ++first) {
        Reducer reducer(terms);
        for (int turn = 0; turn < hosts; ++turn) {
          const auto root = reducer.add(part_of(terms, (first + turn) % hosts, 5));
          ASSERT_EQ(root.has_value(), turn + 1 == hosts);
          if (!root) continue;
          EXPECT_EQ(root->header.chunk, 5U);
          EXPECT_EQ(static_cast<int>(root->ranks.size()), hosts);
          EXPECT_TRUE(testing::same_bits(reinterpret_cast<const float*>(root->data.get()), expected))
              << leaves << " leaves of " << hosts << " hosts";
        }
      }
    }
}

TEST(Reducer, HostsThatDoNotAgreeAreTold) {
  const SessionTerms terms = terms_of(4, 2);
  Reducer reducer(terms);
  EXPECT_FALSE(reducer.add(part_of(terms, 0, 0)));
  EXPECT_THROW(reducer.add(part_of(terms, 0, 0)), CommError) << "twice";
  Contribution shorter = part_of(terms, 1, 0);
  shorter.header.elements = 8;
  EXPECT_THROW(reducer.add(shorter), CommError);
  Contribution more = part_of(terms, 1, 0);
  more.header.partials = 3;
  EXPECT_THROW(reducer.add(more), CommError);
  const auto waiting = reducer.waiting_since(Reducer::Clock::now());
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_EQ(waiting[0].missing_host, 1);
}

}  // namespace
}  // namespace lockstep::reduction
