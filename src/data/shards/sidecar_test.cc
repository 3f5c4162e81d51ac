// When what is kept of a file is believed, and what is written beside it.
#include "data/shards/sidecar.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/test_folder.h"
#include "data/bytes/byte_source.h"
#include "data/bytes/folder_bytes.h"
#include "data/shards/formats.h"
#include "data/shards/shard_set.h"
#include "data/testing/test_compression.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct stat status_of(const std::string& path) {
  struct stat found {};
  EXPECT_EQ(stat(path.c_str(), &found), 0) << path;
  return found;
}

void set_time(const std::string& path, const timespec& modified) {
  const timespec times[2] = {modified, modified};
  EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

// In place, with the time that it had.
void overwrite(const std::string& path, const std::string& text) {
  const struct stat before = status_of(path);
  EXPECT_EQ(static_cast<size_t>(before.st_size), text.size());
  struct stat after = before;
  // Until the system's own time has moved on.
  while (after.st_ctim.tv_sec == before.st_ctim.tv_sec && after.st_ctim.tv_nsec == before.st_ctim.tv_nsec) {
    std::ofstream(path, std::ios::binary | std::ios::in) << text;
    set_time(path, before.st_mtim);
    after = status_of(path);
  }
  EXPECT_EQ(status_of(path).st_mtim.tv_nsec, before.st_mtim.tv_nsec);
}

std::string table(char value, int rows) {
  std::string text = "x\n";
  for (int i = 0; i < rows; ++i) text += std::string(1, value) + "\n";
  return text;
}

class Sidecars : public ::testing::Test {
 protected:
  std::string fingerprint(const std::string& name, const IndexFolder& folder = {}) const {
    return ShardSet(make_format("csv", {}), std::vector<std::string>{folder_.path(name)},
                    {.index_folder = folder})
        .fingerprint();
  }
  std::set<std::string> names_in(const std::string& name) const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path(name)))
      names.insert(entry.path().filename().string());
    return names;
  }

  TestFolder folder_;
};

TEST_F(Sidecars, AFileChangedWithItsSizeAndTimeKeptHasAnotherFingerprint) {
  for (const int rows : {3, 100000}) {
    folder_.write("t.csv", table('1', rows));
    const std::string before = fingerprint("t.csv");
    EXPECT_EQ(fingerprint("t.csv"), before);
    overwrite(folder_.path("t.csv"), table('2', rows));
    EXPECT_NE(fingerprint("t.csv"), before) << rows;
  }
}

// As cp -p, mv and unpacking an archive with clamped times do.
TEST_F(Sidecars, AnotherFilePutInItsPlaceWithTheSameSizeAndTimeToo) {
  folder_.write("t.csv", table('1', 5));
  const std::string before = fingerprint("t.csv");
  folder_.write("other.csv", table('2', 5));
  set_time(folder_.path("other.csv"), status_of(folder_.path("t.csv")).st_mtim);
  fs::rename(folder_.path("other.csv"), folder_.path("t.csv"));
  EXPECT_NE(fingerprint("t.csv"), before);
}

TEST_F(Sidecars, ACompressedFileToo) {
  folder_.write("t.csv.gz", gzipped(table('1', 5000)));
  const std::string before = fingerprint("t.csv.gz");
  EXPECT_EQ(fingerprint("t.csv.gz"), before);
  overwrite(folder_.path("t.csv.gz"), gzipped(table('2', 5000)));
  EXPECT_NE(fingerprint("t.csv.gz"), before);
}

// Content decides: where a file lies, since when, and under which inode says only whether to look.
TEST_F(Sidecars, ACopyAndAMovedFileKeepTheFingerprint) {
  folder_.write("t.csv", table('1', 500));
  const std::string before = fingerprint("t.csv");
  fs::create_directories(folder_.path("copy"));
  fs::copy_file(folder_.path("t.csv"), folder_.path("copy/u.csv"));
  EXPECT_EQ(fingerprint("copy/u.csv"), before);
  fs::rename(folder_.path("copy/u.csv"), folder_.path("copy/v.csv"));
  EXPECT_EQ(fingerprint("copy/v.csv"), before);
  fs::permissions(folder_.path("t.csv"), fs::perms::owner_read);
  EXPECT_EQ(fingerprint("t.csv"), before);
  // With what was kept of the original.
  fs::create_directories(folder_.path("again"));
  fs::copy(folder_.path(".lockstep-index"), folder_.path("again/.lockstep-index"),
           fs::copy_options::recursive);
  fs::copy_file(folder_.path("t.csv"), folder_.path("again/t.csv"));
  EXPECT_EQ(fingerprint("again/t.csv"), before);
}

// What a file system tells nothing of: times that were set back, or that it does not have.
TEST_F(Sidecars, ASampleSeesWhatNoTimeTells) {
  const std::string path = folder_.path("t.bin");
  std::string text(1 << 20, 'a');
  const auto sample = [&] {
    folder_.write("t.bin", text);
    return open_file(path)->sample();
  };
  const std::string before = sample();
  EXPECT_EQ(sample(), before);
  for (const size_t at : {size_t{0}, text.size() - 1}) {
    text[at] = 'b';
    EXPECT_NE(sample(), before) << at;
    text[at] = 'a';
  }
  text = "short";
  const std::string of_short = sample();
  text[2] = 'a';
  EXPECT_NE(sample(), of_short);
  text = "";
  EXPECT_FALSE(sample().empty());
}

TEST_F(Sidecars, AnImageOfAFolderChangedWithItsTimeKeptIsSeen) {
  folder_.write("cat/1.png", "one");
  const std::string before = open_folder(folder_.path("cat"), {".png"})->stamp();
  overwrite(folder_.path("cat/1.png"), "two");
  EXPECT_NE(open_folder(folder_.path("cat"), {".png"})->stamp(), before);
}

// Somebody who may write to the folder of the data, but not to the files of others.
TEST_F(Sidecars, APlantedLinkLeadsToNoOverwrittenFile) {
  const TestFolder home;
  home.write("precious", "mine");
  folder_.write("t.csv", table('1', 5));
  folder_.write("t.csv.gz", gzipped(table('1', 5)));
  for (const char* name : {"t.csv", "t.csv.gz"}) {
    const auto format = make_format("csv", {});
    const std::string sidecar = sidecar_path(*format, folder_.path(name), {});
    const std::string points = folder_.path(".lockstep-index/") + name + ".points";
    fs::create_directories(folder_.path(".lockstep-index"));
    for (const std::string& path : {sidecar, points})
      for (const char* ending : {"", ".partial", ".tmp"})
        fs::create_symlink(home.path("precious"), path + ending);
    fs::create_symlink(home.path("made"), sidecar + ".lock");
    fingerprint(name);
    EXPECT_EQ(read_file(home.path("precious")), "mine") << name;
    EXPECT_FALSE(fs::exists(home.path("made"))) << name;
    EXPECT_FALSE(fs::is_symlink(sidecar)) << name;
    fs::remove_all(folder_.path(".lockstep-index"));
  }
}

TEST_F(Sidecars, ALinkOfAnotherUserInPlaceOfTheFolderIsNotFollowed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a link to another user";
  const TestFolder home;
  folder_.write("t.csv", table('1', 5));
  const std::string link = folder_.path(".lockstep-index");
  fs::create_directory_symlink(home.path(), link);
  ASSERT_EQ(lchown(link.c_str(), 12345, 12345), 0);
  const std::string found = fingerprint("t.csv");
  EXPECT_TRUE(fs::is_empty(home.path()));
  // One's own is meant.
  ASSERT_EQ(lchown(link.c_str(), geteuid(), getegid()), 0);
  EXPECT_EQ(fingerprint("t.csv"), found);
  EXPECT_FALSE(fs::is_empty(home.path()));
}

TEST_F(Sidecars, AreReadAndNotWrittenWhereNothingMayBe) {
  folder_.write("t.csv.gz", gzipped(table('1', 50)));
  const IndexFolder beside("", false), named(folder_.path("index"), false);
  const std::string found = fingerprint("t.csv.gz", beside);
  EXPECT_EQ(fingerprint("t.csv.gz", named), found);
  EXPECT_EQ(names_in(""), std::set<std::string>{"t.csv.gz"});
  EXPECT_EQ(fingerprint("t.csv.gz", folder_.path("index")), found);
  EXPECT_EQ(names_in(""), (std::set<std::string>{"index", "t.csv.gz"}));
  EXPECT_EQ(fingerprint("t.csv.gz", named), found);
}

}  // namespace
}  // namespace lockstep
