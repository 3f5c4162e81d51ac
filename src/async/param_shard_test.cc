#include "async/param_shard.h"

#include <gtest/gtest.h>

#include <cstring>

#include "async/lease_table.h"
#include "base/error.h"

namespace lockstep::async {
namespace {

constexpr int64_t kElements = 4;

ShardSetup setup_of(const Backend& backend) {
  return {
      .graphs =
          {R"(graph update(params: f32[4] @param, grads: f32[4] @grad, momentum: f32[4] @state, scale: f32[],
                        lr: f32[], step: i64[]) {
  p, m = sgd(params, grads, momentum, scale, lr, step) {momentum=0.5}
  return params <- p, momentum <- m
})"},
      .buffers = {"params", "momentum"},
      .seed = 1,
      .most_staged = 4,
      .architecture = backend.architecture()};
}

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

std::vector<float> floats_of(const SharedBytes& bytes) {
  std::vector<float> values(bytes->size() / sizeof(float));
  std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}

ApplyOrder order_of(int64_t version, bool skipped = false) {
  return {.version = version, .updates = version, .lr = 0.5, .scale = 2, .skipped = skipped ? 1 : 0};
}

struct Case {
  std::unique_ptr<Backend> backend = make_backend({.kind = DeviceKind::kCpu});
  ParamShard shard{*backend, setup_of(*backend)};

  Case() {
    shard.load(0, 0, bytes_of({1, 2, 3, 4}));
    shard.load(1, 0, bytes_of({0, 0, 0, 0}));
    shard.begin(0, 0);
  }
  bool push(uint64_t lease, uint64_t attempt, float value) {
    return shard.stage(lease, attempt, 0, bytes_of(std::vector<float>(kElements, value)));
  }
  std::vector<float> params() const { return floats_of(shard.read(0)); }
};

TEST(ParamShard, AppliesWhatWasStagedInTheOrderItIsTold) {
  Case c;
  EXPECT_TRUE(c.push(1, 1, 1));
  EXPECT_TRUE(c.push(2, 1, 2));
  c.shard.apply(2, 1, order_of(1));
  EXPECT_EQ(c.params(), (std::vector<float>{-1, 0, 1, 2}));  // p - 0.5 * 2 * 2
  c.shard.apply(1, 1, order_of(2));
  EXPECT_EQ(c.params(), (std::vector<float>{-3, -2, -1, 0}));  // momentum 0.5 * 4 + 2
  EXPECT_EQ(c.shard.version(), 2);
  EXPECT_EQ(c.shard.staged(), 0);
}

TEST(ParamShard, ASkippedPushMakesAVersionAndChangesNothing) {
  Case c;
  c.push(1, 1, 1);
  c.shard.apply(1, 1, order_of(1, true));
  EXPECT_EQ(c.params(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(c.shard.version(), 1);
}

TEST(ParamShard, TakesAGradientInPieces) {
  Case c;
  EXPECT_FALSE(c.shard.stage(1, 1, 0, bytes_of({1, 1})));
  EXPECT_THROW(c.shard.apply(1, 1, order_of(1)), CommError);
  Case whole;
  EXPECT_FALSE(whole.shard.stage(1, 1, 0, bytes_of({1})));
  EXPECT_TRUE(whole.shard.stage(1, 1, 4, bytes_of({1, 1, 1})));
  whole.shard.apply(1, 1, order_of(1));
  EXPECT_EQ(whole.params(), (std::vector<float>{0, 1, 2, 3}));
}

TEST(ParamShard, RefusesWhatNobodyShouldSend) {
  Case c;
  EXPECT_THROW(c.shard.stage(1, 1, 4, bytes_of({1})), CommError);              // without its beginning
  EXPECT_THROW(c.shard.stage(1, 1, 0, bytes_of({1, 1, 1, 1, 1})), CommError);  // too long
  EXPECT_THROW(c.shard.load(0, 8, bytes_of({1, 1, 1})), CommError);
  EXPECT_THROW(c.shard.load(7, 0, bytes_of({1})), CommError);
  c.push(1, 2, 1);
  EXPECT_THROW(c.shard.apply(1, 2, order_of(2)), CommError);  // a version is missing
  EXPECT_THROW(c.shard.apply(2, 1, order_of(1)), CommError);  // nobody staged it
  for (uint64_t lease = 2; lease < 5; ++lease) c.push(lease, 1, 1);
  EXPECT_THROW(c.push(9, 1, 1), CommError);  // more than may wait
  EXPECT_THROW(parse_setup("{"), CommError);
  EXPECT_THROW(parse_setup(R"({"graphs":[]})"), CommError);
}

TEST(ParamShard, PassesOverWhatComesForADroppedAttempt) {
  Case c;
  EXPECT_FALSE(c.shard.stage(1, 1, 0, bytes_of({1})));
  c.shard.drop(1, 1);
  EXPECT_FALSE(c.shard.stage(1, 1, 4, bytes_of({1, 1, 1})));
  EXPECT_FALSE(c.push(1, 1, 1));
  EXPECT_EQ(c.shard.staged(), 0);
  EXPECT_TRUE(c.push(1, 2, 1));
  c.shard.apply(1, 2, order_of(1));
  EXPECT_EQ(c.params(), (std::vector<float>{0, 1, 2, 3}));
}

TEST(ParamShard, RefusesAnotherArchitecture) {
  const auto backend = make_backend({.kind = DeviceKind::kCpu});
  ShardSetup setup = setup_of(*backend);
  setup.architecture = "abacus";
  EXPECT_THROW(ParamShard(*backend, setup), UserError);
  EXPECT_EQ(parse_setup(to_text(setup)), setup);
}

// A worker dies after it has reached `reached` of two servers, with a piece or with all of its gradient, for
// every push of a run: the push reaches both or none, and what comes out is what nobody's death brings about.
TEST(StagedCommits, ADeathBetweenServersLeavesNoTornPush) {
  const auto gradient = [](int64_t lease) { return static_cast<float>(lease) / 4; };
  const auto run = [&](int reached, bool whole) {
    Case servers[2];
    LeaseTable table(6, 3, {});
    bool dies = reached > 0;
    while (table.version() < 6) {
      const Lease lease = *table.grant();
      const auto number = static_cast<uint64_t>(lease.number), attempt = static_cast<uint64_t>(lease.attempt);
      const std::vector<float> values(kElements, gradient(lease.number));
      if (std::exchange(dies, reached > 0 && !dies)) {
        for (int i = 0; i < reached; ++i)
          servers[i].shard.stage(number, attempt, 0,
                                 bytes_of(whole ? values : std::vector<float>(1, values[0])));
        table.give_back(lease.number);
        for (Case& server : servers) server.shard.drop(number, attempt);
        continue;
      }
      for (Case& server : servers) EXPECT_TRUE(server.shard.stage(number, attempt, 0, bytes_of(values)));
      table.apply(lease.number);
      for (Case& server : servers) server.shard.apply(number, attempt, order_of(table.version()));
    }
    EXPECT_EQ(servers[0].params(), servers[1].params());
    for (const Case& server : servers) EXPECT_EQ(server.shard.staged(), 0);
    return servers[0].params();
  };
  const std::vector<float> expected = run(0, false);
  for (const int reached : {1, 2})
    for (const bool whole : {false, true}) EXPECT_EQ(run(reached, whole), expected) << reached << whole;
}

}  // namespace
}  // namespace lockstep::async
