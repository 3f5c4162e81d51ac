// What is said of emulated steps: that memory forbids them, or that it makes reading slower, with figures.
#include "cli/input_stall.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

constexpr double kMost = 1e6;

MeasuredStall stall_of(int64_t batch_mib, double per_second) {
  MeasuredStall stall;
  stall.step_ms = 50;
  stall.records_per_second = per_second;
  stall.batch_bytes = batch_mib << 20;
  stall.reading.report.seconds = 1;
  stall.reading.report.budget = int64_t{14} << 20;
  return stall;
}

TEST(InputStall, SaysThatMemoryForbidsSuchSteps) {
  EXPECT_EQ(
      stall_of(8, kMost).sentence(kMost),
      "impossible in this memory: a batch takes 8.0 MiB, the one in use and the next 16.0, and data.memory "
      "leaves 14.0 to training records; raise it");
  EXPECT_EQ(stall_of(7, kMost).sentence(kMost).find("impossible"), std::string::npos);
}

TEST(InputStall, SaysThatBatchesTakeMemoryFromBlocks) {
  const std::string slower = stall_of(2, kMost / 2).sentence(kMost);
  EXPECT_NE(slower.find("two batches take 4.0 of 14.0 MiB"), std::string::npos) << slower;
  EXPECT_NE(slower.find("0.50 million records/s can be read, where small batches would allow 1.00"),
            std::string::npos)
      << slower;
  // Too little for that to be the reason.
  const std::string small = stall_of(0, kMost / 2).sentence(kMost);
  EXPECT_EQ(small.find("two batches"), std::string::npos) << small;
  EXPECT_NE(small.find("in batches of this size 0.50 million records/s"), std::string::npos) << small;
  EXPECT_EQ(stall_of(2, kMost).sentence(kMost).find("two batches"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
