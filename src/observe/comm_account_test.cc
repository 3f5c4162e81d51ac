#include "observe/comm_account.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

const CommOption& find(const CommunicationSummary& account, const std::string& name) {
  for (const CommOption& option : account.options)
    if (option.name == name) return option;
  ADD_FAILURE() << "no " << name;
  return account.options.front();
}

// Four buckets of 1 MiB, handed over 30, 20, 10 and 0 ms before the end.
std::vector<CommBucket> four(double transfer_ms) {
  std::vector<CommBucket> buckets;
  for (const double ahead : {30.0, 20.0, 10.0, 0.0}) buckets.push_back({1 << 20, ahead, transfer_ms, 0});
  return buckets;
}

TEST(CommAccount, OnlyTheLastBucketIsExposedWhereTheLinkKeepsUp) {
  EXPECT_DOUBLE_EQ(account_of(four(8), 100, {}).modelled_ms, 8);
  EXPECT_DOUBLE_EQ(account_of(four(10), 100, {}).modelled_ms, 10);
}

TEST(CommAccount, BucketsQueueWhereItDoesNot) {
  const CommunicationSummary account = account_of(four(25), 150, {});
  EXPECT_DOUBLE_EQ(account.modelled_ms, 4 * 25 - 30);
  EXPECT_DOUBLE_EQ(find(account, "no communication").step_ms, 150 - 70);
  // 12.5 ms a bucket: 4 of them after the first hand-over.
  EXPECT_DOUBLE_EQ(find(account, "twice the bandwidth").exposed_ms, 4 * 12.5 - 30);
  EXPECT_DOUBLE_EQ(find(account, "twice the bandwidth").saves_ms, 50);
}

TEST(CommAccount, LatencyStaysAndCodingCosts) {
  CommSetting setting{.latency_ms = 5};
  setting.codecs.push_back({.name = "int8", .bytes = 1, .coding_ms = 2, .own_ms = 3});
  const CommunicationSummary account = account_of(four(25), 150, setting);
  const CommOption& int8 = find(account, "compress: int8");
  EXPECT_DOUBLE_EQ(int8.exposed_ms, 4 * (5 + 20.0 / 4 + 2) - 30);
  EXPECT_DOUBLE_EQ(int8.saves_ms, 70 - int8.exposed_ms - 4 * 3);
  EXPECT_DOUBLE_EQ(int8.step_ms, 150 - int8.saves_ms);
}

TEST(CommAccount, ServersSaveNothingBetweenTwoHosts) {
  EXPECT_DOUBLE_EQ(find(account_of(four(25), 150, {.hosts = 2}), "Reduction Servers").saves_ms, 0);
  // Of 2(P-1)/P to 1.
  EXPECT_DOUBLE_EQ(find(account_of(four(30), 150, {.hosts = 4}), "Reduction Servers").exposed_ms,
                   4 * 30.0 / 1.5 - 30);
}

TEST(CommAccount, NothingIsExposedWithoutBuckets) { EXPECT_EQ(account_of({}, 10, {}).modelled_ms, 0); }

}  // namespace
}  // namespace lockstep
