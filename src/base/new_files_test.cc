#include "base/new_files.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/test_folder.h"

namespace lockstep {
namespace {

std::vector<std::string> names(const TestFolder& folder) {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    all.push_back(entry.path().filename().string());
  std::sort(all.begin(), all.end());
  return all;
}

using Names = std::vector<std::string>;

TEST(NewFiles, AppearTogetherWhenAllAreComplete) {
  const TestFolder folder;
  NewFiles files(false);
  write_file(files.add(folder.path("a")), "1");
  write_file(files.add(folder.path("b")), "2");
  for (const std::string& name : names(folder)) EXPECT_NE(name.find(".tmp-"), std::string::npos) << name;
  files.finish();
  EXPECT_EQ(names(folder), (Names{"a", "b"}));
  EXPECT_EQ(read_file(folder.path("b")), "2");
}

TEST(NewFiles, LeaveNothingWhereSomethingFailed) {
  const TestFolder folder;
  {
    NewFiles files(false);
    write_file(files.add(folder.path("a")), "1");
  }
  EXPECT_EQ(names(folder), Names{});
}

TEST(NewFiles, ReplaceOnlyWhatTheyMay) {
  const TestFolder folder;
  folder.write("a", "old");
  NewFiles careful(false);
  EXPECT_THROW(careful.add(folder.path("a")), UserError);
  // One that appears meanwhile is not replaced either.
  write_file(careful.add(folder.path("b")), "new");
  folder.write("b", "another's");
  EXPECT_THROW(careful.finish(), UserError);
  EXPECT_EQ(read_file(folder.path("b")), "another's");
  NewFiles bold(true);
  write_file(bold.add(folder.path("a")), "new");
  bold.finish();
  EXPECT_EQ(read_file(folder.path("a")), "new");
  EXPECT_THROW(bold.add(folder.path()), UserError);
}

}  // namespace
}  // namespace lockstep
