// What the kernel says about a measurement's surroundings is read rightly, and said only where it matters.
#include "cli/machine_noise.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace lockstep {
namespace {

TEST(MachineNoise, ReadsWhatTheKernelSays) {
  MachineNoise noise;
  add_processor_line("cpu  100 20 30 4000 50 6 7 800 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n", 100, noise);
  EXPECT_DOUBLE_EQ(noise.all, 1.63);
  EXPECT_DOUBLE_EQ(noise.stolen, 8);
  add_processor_line("intr 1 2 3 4 5 6 7 8 9", 100, noise);
  add_processor_line("", 100, noise);
  EXPECT_DOUBLE_EQ(noise.all, 1.63);
  EXPECT_EQ(storage_bytes_in("rchar: 12\nwchar: 3\nsyscr: 4\nread_bytes: 4096\nwrite_bytes: 1\n"), 4096);
  EXPECT_EQ(storage_bytes_in("rchar: 12\n"), 0);
  EXPECT_DOUBLE_EQ(delayed_in("5000000 2500000000 17\n"), 2.5);
  EXPECT_DOUBLE_EQ(delayed_in(""), 0);
}

TEST(MachineNoise, SaysOnlyWhatMatters) {
  MachineNoise quiet{.all = 3.01, .own = 3, .stolen = 0.01, .delayed = 1, .storage_bytes = 1000};
  EXPECT_EQ(quiet.sentence(2, 1000000), "");
  EXPECT_EQ(MachineNoise{}.sentence(2, 0), "");
  MachineNoise noise = quiet;
  noise.all = 4.5;
  EXPECT_EQ(noise.sentence(2, 1000000), "other processes took 1.50 processor seconds of 2.00 s");
  noise.stolen = 0.5;
  noise.storage_bytes = 40000000;
  EXPECT_EQ(
      noise.sentence(2, 500000000),
      "other processes took 1.50 processor seconds of 2.00 s; the hypervisor took 0.50 processor seconds "
      "of 2.00 s; 40 MB of 500 came from a disk, not from memory");
  // Ticks are coarser than the time of a process.
  noise.all = 2.9;
  EXPECT_EQ(noise.others(), 0);
}

TEST(MachineNoise, LooksAtThisProcess) {
  const MachineNoise before = look_at_machine();
  std::atomic<uint64_t> sum = 0;
  while (look_at_machine().own - before.own < 0.01)
    for (uint64_t i = 0; i < 100000; ++i) sum.fetch_add(i, std::memory_order_relaxed);
  const MachineNoise since = look_at_machine() - before;
  EXPECT_GE(since.own, 0.01);
  EXPECT_GE(since.all, 0);
  EXPECT_GE(since.storage_bytes, 0);
}

TEST(MachineNoise, ProcessorsHandOver) {
  const double taken = nanoseconds_between_processors();
  EXPECT_GE(taken, 0);
  EXPECT_LT(taken, 1e9);
}

}  // namespace
}  // namespace lockstep
