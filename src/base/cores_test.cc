#include "base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "base/test_folder.h"

namespace lockstep {
namespace {

TEST(Cores, TheMachinesAreThoseOnlineWithinTheContainersSet) {
  const TestFolder folder;
  folder.write("sys/devices/system/cpu/online", "0-3,8,1000-1999\n");
  EXPECT_EQ(available_cores(folder.path()).machine, 1005);
  folder.write("sys/fs/cgroup/cpuset.cpus.effective", "0-3,1000-1999\n");
  EXPECT_EQ(available_cores(folder.path()).machine, 1004);
  folder.write("sys/fs/cgroup/cpuset.cpus.effective", "\n");
  EXPECT_EQ(available_cores(folder.path()).machine, 1005);
}

TEST(Cores, WithoutAnyWordTheMachinesAreTheUsable) {
  const TestFolder folder;
  EXPECT_EQ(available_cores(folder.path()).machine, available_cores().usable);
  folder.write("sys/devices/system/cpu/online", "3-x\n");
  EXPECT_EQ(available_cores(folder.path()).machine, available_cores().usable);
}

TEST(Cores, AQuotaOfTheProcesssGroupOrOfOneAboveGrantsTheTimeOfAFew) {
  const TestFolder folder;
  const auto quota = [&] { return available_cores(folder.path()).quota; };
  folder.write("sys/devices/system/cpu/online", "0-15\n");
  folder.write("proc/self/cgroup", "0::/a/b\n");
  EXPECT_EQ(quota(), std::nullopt);
  folder.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  folder.write("sys/fs/cgroup/a/cpu.max", "350000 100000\n");
  EXPECT_EQ(quota(), 3.5);
  EXPECT_EQ(available_cores(folder.path()).machine, 4);
  folder.write("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 0.5);
  EXPECT_EQ(available_cores(folder.path()).machine, 1);
  EXPECT_EQ(available_cores(folder.path()).usable, 1);
}

TEST(Cores, AQuotaOfVersionOneLiesInTwoFilesOfItsOwnHierarchy) {
  const TestFolder folder;
  folder.write("sys/devices/system/cpu/online", "0-15\n");
  folder.write("proc/self/cgroup", "5:cpuset:/other\n4:cpu,cpuacct:/job\n0::/\n");
  folder.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
  folder.write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  folder.write("sys/fs/cgroup/cpu/other/cpu.cfs_quota_us", "1\n");
  folder.write("sys/fs/cgroup/cpu/other/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(available_cores(folder.path()).quota, std::nullopt);
  folder.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(available_cores(folder.path()).quota, 2.0);
  EXPECT_EQ(available_cores(folder.path()).machine, 2);
}

// On a thread of its own, whose binding ends with it.
TEST(Cores, AProcessBoundToOneCoreMayUseOneOfTheMachines) {
  const Cores before = available_cores();
  Cores bound;
  std::thread([&] {
    cpu_set_t set;
    ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    int first = 0;
    while (!CPU_ISSET(first, &set)) ++first;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    bound = available_cores();
  }).join();
  EXPECT_EQ(bound.usable, 1);
  EXPECT_EQ(bound.machine, before.machine);
}

}  // namespace
}  // namespace lockstep
