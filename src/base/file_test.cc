#include "base/file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/test_folder.h"

namespace lockstep {
namespace {

TEST(File, WritesWholeAndReadsBack) {
  const TestFolder folder;
  const std::string path = folder.path("file");
  const std::string bytes("a\0b\n", 4);
  write_file(path, bytes);
  EXPECT_EQ(read_file(path), bytes);
  EXPECT_THROW(read_file(path, 3), UserError);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path("")), {}), 1);
}

TEST(File, ManyMayWriteTheSameOne) {
  const TestFolder folder;
  const std::string path = folder.path("file");
  const std::string bytes(1 << 16, 'x');
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] {
      for (int turn = 0; turn < 20; ++turn) {
        write_file(path, bytes);
        EXPECT_EQ(read_file(path), bytes);
      }
    });
  for (std::thread& writer : writers) writer.join();
}

TEST(File, NamesThePathThatIsMissing) {
  try {
    read_file("/nonexistent/lockstep");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/lockstep"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep
