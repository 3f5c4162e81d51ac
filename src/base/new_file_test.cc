#include "base/new_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/test_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const TestFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path())) names.push_back(entry.path().filename());
  return names;
}

TEST(NewFile, HasItsNameWhenItIsComplete) {
  const TestFolder folder;
  const std::string path = folder.path("a");
  {
    NewFile file(path);
    file.write("one two");
    file.write_at(4, "TWO");
    EXPECT_FALSE(fs::exists(path));
    EXPECT_EQ(finished_path(file.temporary()), path);
    file.finish(NewFile::Sync::kYes);
  }
  EXPECT_EQ(read_file(path), "one TWO");
  EXPECT_EQ(names_in(folder), std::vector<std::string>{"a"});
}

TEST(NewFile, LeavesNothingWithoutItsEnd) {
  const TestFolder folder;
  { NewFile(folder.path("a")).write("x"); }
  EXPECT_TRUE(names_in(folder).empty());
  EXPECT_THROW(NewFile(folder.path("no/such/folder")), UserError);
}

// Neither a link that has the file's own name nor one under the name that a file had while it was written in
// earlier versions is followed.
TEST(NewFile, PlantedLinksLeadNowhere) {
  const TestFolder folder, home;
  home.write("precious", "mine");
  const std::string path = folder.path("a");
  fs::create_symlink(home.path("precious"), path);
  fs::create_symlink(home.path("precious"), path + ".partial");
  fs::create_symlink(home.path("new"), folder.path("b.partial"));
  write_file(path, "theirs");
  write_file(folder.path("b"), "theirs");
  EXPECT_EQ(home.path("precious"), fs::read_symlink(path + ".partial"));
  EXPECT_EQ(read_file(home.path("precious")), "mine");
  EXPECT_FALSE(fs::exists(home.path("new")));
  EXPECT_FALSE(fs::is_symlink(path));
  EXPECT_EQ(read_file(path), "theirs");
}

TEST(NewFile, TwoOfOnePathNeverShareAName) {
  const TestFolder folder;
  NewFile first(folder.path("a")), second(folder.path("a"));
  EXPECT_NE(first.temporary(), second.temporary());
}

TEST(NewFile, RightsAreThoseOfTheProcess) {
  const TestFolder folder;
  const mode_t before = umask(027);
  write_file(folder.path("a"), "x");
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat(folder.path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(NewFile, OnlyItsOwnNamesAreTakenForPartsOfFiles) {
  EXPECT_EQ(finished_path("x/t.rows.0123456789abcdef.partial"), "x/t.rows");
  for (const char* other : {"x/t.rows", "x/t.rows.partial", "x/t.rows.0123.partial",
                            "x/t.rows.0123456789ABCDEF.partial", "0123456789abcdef.partial", ".partial", ""})
    EXPECT_EQ(finished_path(other), "") << other;
}

}  // namespace
}  // namespace lockstep
