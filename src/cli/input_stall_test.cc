// What is said of emulated steps: that memory forbids them, or that it makes reading slower, with figures, or
// that the machine was disturbed; and how many records such a step has.
#include "cli/input_stall.h"

#include <gtest/gtest.h>

#include <functional>

namespace lockstep {
namespace {

constexpr double kMost = 1e6;

MeasuredStall stall_of(int64_t batch_mib, double per_second) {
  MeasuredStall stall;
  stall.step_ms = 50;
  stall.records_per_second = per_second;
  stall.batch_bytes = batch_mib << 20;
  stall.runs.resize(2);
  for (StallRun& run : stall.runs) {
    run.steps.report.seconds = run.before.report.seconds = 1;
    run.steps.report.budget = int64_t{14} << 20;
    run.before.records_per_second = run.after.records_per_second = per_second;
  }
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

TEST(InputStall, SaysThatAnEpochsBeginningDoesNotFit) {
  MeasuredStall stall = stall_of(2, kMost);
  stall.begins_with = int64_t{12} << 20;
  EXPECT_EQ(stall.sentence(kMost).find("an epoch begins"), std::string::npos);  // nothing waited
  stall.runs[1].steps.report.waited[1] = 0.2;
  EXPECT_DOUBLE_EQ(stall.waited(), 0.2);
  const std::string said = stall.sentence(kMost);
  EXPECT_NE(
      said.find("an epoch begins with 12.0 MiB of rows, and beside the batch in use and the next memory "
                "holds 10.0: data.memory 20MiB would hold them"),
      std::string::npos)
      << said;
  stall.begins_with = int64_t{9} << 20;
  EXPECT_EQ(stall.sentence(kMost).find("an epoch begins"), std::string::npos);
}

TEST(InputStall, SaysThatTheMachineWasDisturbed) {
  MeasuredStall stall = stall_of(1, kMost);
  stall.runs[1].before.between_processors = 60;
  stall.runs[1].steps.between_processors = 240;
  stall.runs[1].steps.machine.all = 0.5;
  EXPECT_EQ(stall.sentence(kMost).find("meanwhile"), std::string::npos);  // nothing waited
  stall.runs[1].steps.report.waited[1] = 0.2;
  const std::string said = stall.sentence(kMost);
  EXPECT_NE(said.find("; meanwhile other processes took 0.50 processor seconds of 1.00 s"), std::string::npos)
      << said;
  EXPECT_NE(said.find("took 240 ns to reach another, and 60 while"), std::string::npos) << said;
  EXPECT_EQ(said.find("of a processor"), std::string::npos) << said;
  EXPECT_EQ(said.find("changed its speed"), std::string::npos) << said;
  stall.runs[1].before.machine.own = 0.4;
  stall.runs[1].steps.records_per_second = kMost;
  stall.runs[1].steps.machine.own = 0.5;
  EXPECT_NE(
      stall.sentence(kMost).find("a record took 0.50 us of a processor, and 0.40 while that was measured"),
      std::string::npos)
      << stall.sentence(kMost);
  stall.runs[1].after.records_per_second = kMost / 2;
  EXPECT_NE(stall.sentence(kMost).find("1.00 million records/s could be read before, 0.50 after"),
            std::string::npos)
      << stall.sentence(kMost);
}

TEST(InputStall, TakesTheSteadiestRunsHoweverLongTheyWaited) {
  const auto run_of = [](double before, double after, double waited) {
    StallRun run;
    run.before.records_per_second = before;
    run.after.records_per_second = after;
    run.steps.batch = 1000;
    run.steps.report.seconds = 1;
    run.steps.report.waited[1] = waited;
    return run;
  };
  const StallRun slower = run_of(1.2e6, 0.6e6, 0);
  EXPECT_DOUBLE_EQ(slower.drift(), 0.5);
  EXPECT_DOUBLE_EQ(slower.slack(1), 0.6);
  const std::vector<StallRun> taken =
      steadiest({run_of(1.2e6, 1.2e6, 0.3), slower, run_of(1e6, 1.5e6, 0), run_of(1e6, 1.1e6, 0.2)}, 2);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_DOUBLE_EQ(taken[0].waited(), 0.3);
  EXPECT_DOUBLE_EQ(taken[1].waited(), 0.2);
}

// What is read in batches of that size, and how many of them a search tries.
int64_t found_with(const std::function<double(int64_t)>& per_second, int& tried) {
  BatchSearch search(50, per_second(1024));
  for (tried = 1; tried < 4; ++tried)
    if (search.tried(per_second(search.batch()))) break;
  return search.found();
}

TEST(BatchSearch, TakesWhatCanBeReadWithSlack) {
  int tried = 0;
  EXPECT_EQ(found_with([](int64_t) { return 1.2e6; }, tried), 50000);
  EXPECT_EQ(tried, 1);
  // Large batches take memory from blocks.
  const auto falling = [](int64_t batch) { return 1.2e6 / (1 + static_cast<double>(batch) / 20000); };
  const int64_t found = found_with(falling, tried);
  EXPECT_LE(tried, 4);
  EXPECT_GT(found, 0);
  EXPECT_GE(falling(found) * 0.05, 1.14 * static_cast<double>(found));
  EXPECT_LE(falling(found) * 0.05, 1.5 * static_cast<double>(found));
  // None of those that were tried could be read in time: what the last one allows.
  const auto hopeless = [](int64_t batch) { return 1e9 / static_cast<double>(batch * batch); };
  EXPECT_GT(found_with(hopeless, tried), 0);
}

}  // namespace
}  // namespace lockstep
