#include "base/available_memory.h"

#include <gtest/gtest.h>

#include "base/test_folder.h"

namespace lockstep {
namespace {

class AvailableMemory : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const { folder_.write(path, text); }
  int64_t available() const { return available_memory_bytes(folder_.path()); }

  TestFolder folder_;
};

TEST_F(AvailableMemory, IsWhatTheMachineHasWithoutLimits) {
  write("proc/meminfo", "MemTotal:  4096 kB\nMemFree:  10 kB\nMemAvailable:  2048 kB\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  write("sys/fs/cgroup/memory.current", "1000\n");
  EXPECT_EQ(available(), 2048 * 1024);
}

TEST_F(AvailableMemory, TheTightestGroupCounts) {
  write("proc/meminfo", "MemAvailable:  2048 kB\n");
  write("proc/self/cgroup", "0::/jobs/one\n");
  write("sys/fs/cgroup/jobs/memory.max", "50000\n");
  write("sys/fs/cgroup/jobs/memory.current", "20000\n");
  write("sys/fs/cgroup/jobs/one/memory.max", "40000\n");
  write("sys/fs/cgroup/jobs/one/memory.current", "1000\n");
  EXPECT_EQ(available(), 30000);
}

TEST_F(AvailableMemory, TheOlderHierarchyIsReadToo) {
  write("proc/meminfo", "MemAvailable:  2048 kB\n");
  write("proc/self/cgroup", "4:memory:/x\n1:name=systemd:/y\n");
  write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9000\n");
  write("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "9500\n");
  EXPECT_EQ(available(), 0);
}

TEST_F(AvailableMemory, IsZeroWhereNobodySays) { EXPECT_EQ(available(), 0); }

}  // namespace
}  // namespace lockstep
