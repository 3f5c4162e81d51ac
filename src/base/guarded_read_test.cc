// A mapped file that is cut: reading what is gone ends the guarded call, and nothing else.
#include "base/guarded_read.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <filesystem>

#include "base/test_folder.h"

namespace lockstep {
namespace {

constexpr size_t kPage = 4096;

struct OneByte {
  const std::byte* at;
  std::byte value{};
  bool done = false;
};

void read_one(void* context, GuardedRange& range) {
  auto& self = *static_cast<OneByte*>(context);
  range.begin = self.at;
  range.end = self.at + 1;
  self.value = *static_cast<const volatile std::byte*>(self.at);
  self.done = true;
}

TEST(GuardedRead, LeavesWhatCannotBeRead) {
  const TestFolder folder;
  folder.write("x", std::string(3 * kPage, 'x'));
  const int file = open(folder.path("x").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  void* const mapped = mmap(nullptr, 3 * kPage, PROT_READ, MAP_SHARED, file, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const auto* bytes = static_cast<const std::byte*>(mapped);
  std::filesystem::resize_file(folder.path("x"), kPage);
  // Twice each: the signal can be caught again, and reading goes on.
  for (int i = 0; i < 2; ++i) {
    OneByte gone{bytes + 2 * kPage};
    EXPECT_FALSE(read_guarded(read_one, &gone));
    EXPECT_FALSE(gone.done);
    OneByte there{bytes + 5};
    EXPECT_TRUE(read_guarded(read_one, &there));
    EXPECT_EQ(there.value, std::byte{'x'});
  }
  EXPECT_TRUE(bring_to_memory(bytes, kPage));
  EXPECT_FALSE(bring_to_memory(bytes + 5, kPage));
  EXPECT_FALSE(bring_to_memory(bytes, 3 * kPage));
  EXPECT_TRUE(bring_to_memory(bytes + 2 * kPage, 0));
  munmap(mapped, 3 * kPage);
  close(file);
}

}  // namespace
}  // namespace lockstep
