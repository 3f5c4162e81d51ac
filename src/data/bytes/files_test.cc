#include "data/bytes/files.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/test_folder.h"

namespace lockstep {
namespace {

TEST(Files, PatternsMatchInByteOrder) {
  const TestFolder folder;
  for (const char* name : {"b.csv", "a.csv", "B.csv", "c.txt"}) folder.write(name, "x");
  EXPECT_EQ(match_files(folder.path("*.csv")),
            (std::vector<std::string>{folder.path("B.csv"), folder.path("a.csv"), folder.path("b.csv")}));
  EXPECT_EQ(match_files(folder.path("c.txt")), std::vector<std::string>{folder.path("c.txt")});
  EXPECT_THROW(match_files(folder.path("*.parquet")), UserError);
  EXPECT_THROW(match_files(""), UserError);
}

TEST(Files, FoldersAreReadRecursivelyOnce) {
  const TestFolder folder;
  for (const char* name : {"z.txt", "sub/a.txt", ".git/config", ".hidden"}) folder.write(name, "x");
  std::filesystem::create_symlink(folder.path("z.txt"), folder.path("link.txt"));
  std::filesystem::create_directory_symlink(folder.path("sub"), folder.path("again"));
  EXPECT_EQ(files_under(folder.path()),
            (std::vector<std::string>{folder.path("sub/a.txt"), folder.path("z.txt")}));
  EXPECT_EQ(files_under(folder.path("z.txt")), std::vector<std::string>{folder.path("z.txt")});
  EXPECT_THROW(files_under(folder.path("none")), UserError);
}

TEST(Files, OverlappingNamesCountOnce) {
  const TestFolder folder;
  for (const char* name : {"a.csv", "b.csv", "notes.md"}) folder.write(name, "x");
  const std::vector<std::string> both{folder.path("a.csv"), folder.path("b.csv")};
  EXPECT_EQ(expand_files({folder.path(), folder.path("*.csv")}, ".csv"), both);
  EXPECT_THROW(expand_files({folder.path()}, ".txt"), UserError);
  EXPECT_THROW(expand_files({}), UserError);
}

}  // namespace
}  // namespace lockstep
