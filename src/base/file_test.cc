#include "base/file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"

namespace lockstep {
namespace {

TEST(File, WritesWholeAndReadsBack) {
  const std::string path = (std::filesystem::temp_directory_path() / "lockstep_file_test").string();
  const std::string bytes("a\0b\n", 4);
  write_file(path, bytes);
  EXPECT_EQ(read_file(path), bytes);
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  EXPECT_THROW(read_file(path, 3), UserError);
  std::filesystem::remove(path);
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
