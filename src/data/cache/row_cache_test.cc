// How rows are kept: found again where nothing changed and made again where something did, by one of several
// processes, and completely or not at all.
#include "data/cache/row_cache.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "data/cache/row_file.h"
#include "data/testing/test_tables.h"

namespace lockstep {
namespace {

class RowCaches : public RowCacheTest {
 protected:
  // How many bytes of rows opening writes.
  int64_t written() {
    int64_t bytes = 0;
    rows_.progress = [&](int64_t done, int64_t) { bytes = std::max(bytes, done); };
    open_row_cache(*open().source, rows_);
    rows_.progress = {};
    return bytes;
  }

  // In a process of its own; gives its number. Ends with 0 if nothing is thrown.
  template <typename Body>
  static pid_t start(const Body& body) {
    const pid_t process = fork();
    if (process != 0) return process;
    int code = 1;
    try {
      body();
      code = 0;
    } catch (const UserError& error) {
      code = std::string(error.what()).find("cannot write") != std::string::npos ? 2 : 1;
    }
    _exit(code);
  }
  static int end_of(pid_t process) {
    int status = 0;
    waitpid(process, &status, 0);
    return status;
  }
};

TEST_F(RowCaches, AreWrittenOnce) {
  EXPECT_GT(written(), 0);
  EXPECT_EQ(written(), 0);
  rows_.folder = folder_.path("index");  // another folder is another cache
  EXPECT_GT(written(), 0);
}

TEST_F(RowCaches, LieBesideTheDataWhereNoFolderIsNamed) {
  rows_.folder.clear();
  EXPECT_GT(written(), 0);
  rows_.folder = folder_.path("tx/.lockstep-index");
  EXPECT_EQ(kept().size(), 3);
}

TEST_F(RowCaches, AreOthersForAnotherEncoding) {
  const auto keys = row_cache_keys(*open().source);
  EXPECT_EQ(row_cache_keys(*open().source), keys);
  options_.encoding.buckets = 999;
  EXPECT_NE(row_cache_keys(*open().source)[0], keys[0]);
  options_.encoding.buckets = 1000;
  options_.encoding.hold_out = 0.5;  // other constants
  EXPECT_NE(row_cache_keys(*open().source)[0], keys[0]);
  options_.encoding.hold_out = 0;
  EXPECT_EQ(row_cache_keys(*open().source), keys);
}

TEST_F(RowCaches, DoNotDependOnOtherShardsWithoutConstants) {
  options_.text = TextRole{"merchant", "is_fraud", 8, 257, 2};
  const Table all = open();
  const Table one = open_table(options_, {all.source->shards().manifest().shards()[1].name});
  EXPECT_EQ(row_cache_keys(*one.source)[0], row_cache_keys(*all.source)[1]);
  EXPECT_EQ(mixed_rows(*keep(all.source)), mixed_rows(*all.source));
}

TEST_F(RowCaches, OfAShardThatChangedAreReplaced) {
  written();
  const std::vector<std::string> before = kept();
  const std::string shard = open().source->shards().manifest().shards()[1].name;
  std::string text = read_file(shard);
  write_file(shard, text + text.substr(text.rfind('\n', text.size() - 2) + 1));
  std::ofstream(before[1] + ".0123456789abcdef.partial") << "left behind";
  EXPECT_GT(written(), 0);
  const std::vector<std::string> after = kept();
  EXPECT_EQ(after.size(), 5) << "other shards hold the same, and their rows with other constants";
  EXPECT_EQ(std::count(after.begin(), after.end(), before[1]), 0);
  EXPECT_TRUE(kept(".partial").empty());
}

TEST_F(RowCaches, WithADamagedHeaderAreMadeAgain) {
  const std::string expected = mixed_rows(*keep(open().source));
  flip(kept()[0], 30);
  std::filesystem::resize_file(kept()[1], 5000);
  EXPECT_GT(written(), 0);
  EXPECT_EQ(written(), 0);
  EXPECT_EQ(mixed_rows(*keep(open().source)), expected);
}

TEST_F(RowCaches, OfAProcessThatWasKilledAreWrittenAnew) {
  const Table table = open();
  const int status = end_of(start([&] {
    rows_.progress = [](int64_t, int64_t) { raise(SIGKILL); };
    open_row_cache(*table.source, rows_);
  }));
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(kept(".partial").size(), 1);
  EXPECT_TRUE(kept().empty());
  EXPECT_EQ(mixed_rows(*keep(table.source)), mixed_rows(*table.source));
  EXPECT_EQ(kept().size(), 3);
  EXPECT_TRUE(kept(".partial").empty());
}

// The first process stops while it holds a shard, until the second one has written another.
TEST_F(RowCaches, AreSharedOutToProcessesThatStartTogether) {
  const Table table = open();
  int began[2], go[2];
  ASSERT_EQ(pipe(began) + pipe(go), 0);
  const auto tell = [](int pipe) { (void)!write(pipe, "x", 1); };
  const auto hear = [](int pipe) {
    char byte = 0;
    (void)!read(pipe, &byte, 1);
  };
  const auto work = [&](const std::function<void(int)>& at_block) {
    int blocks = 0;
    rows_.progress = [&](int64_t, int64_t) { at_block(blocks++); };
    if (mixed_rows(*keep(table.source)) != mixed_rows(*table.source)) throw UserError("other rows");
    if (blocks == 0) throw UserError("nothing left to write");
  };
  const pid_t first = start([&] {
    work([&](int block) {
      if (block > 0) return;
      tell(began[1]);
      hear(go[0]);
    });
  });
  hear(began[0]);
  const pid_t second = start([&] {
    work([&](int block) {
      if (block == 0) tell(go[1]);
    });
  });
  EXPECT_EQ(end_of(first), 0);
  EXPECT_EQ(end_of(second), 0);
  EXPECT_EQ(kept().size(), 3);
  EXPECT_TRUE(kept(".partial").empty());
  for (const int end : {began[0], began[1], go[0], go[1]}) close(end);
}

TEST_F(RowCaches, ThatCannotBeWrittenAreAnErrorWithTheBytes) {
  folder_.write("file", "");
  rows_.folder = folder_.path("file");
  const std::string error = error_of_keeping();
  EXPECT_TRUE(error.starts_with("cannot write " + folder_.path("file/"))) << error;
  EXPECT_NE(error.find("the file needs "), std::string::npos) << error;
  EXPECT_NE(error.find("data.cache_folder"), std::string::npos) << error;
}

TEST_F(RowCaches, ThatDoNotFitAreAnErrorBeforeAnythingIsWritten) {
  rows_.free_bytes = [](const std::string&) { return int64_t{100000}; };
  const std::string error = error_of_keeping();
  EXPECT_TRUE(error.starts_with("data.cache: the rows need ")) << error;
  EXPECT_NE(error.find(rows_.folder + ", which can take 97.7 KiB"), std::string::npos) << error;
  EXPECT_TRUE(std::filesystem::is_empty(rows_.folder));
}

// A limit of the process stands in for a disk that fills up after it was asked.
TEST_F(RowCaches, OnADiskThatFillsUpAreAnErrorAndRemoved) {
  const Table table = open();
  const int status = end_of(start([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{50000, 50000};
    setrlimit(RLIMIT_FSIZE, &limit);
    open_row_cache(*table.source, rows_);
  }));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << status;
  EXPECT_TRUE(kept(".partial").empty());
  EXPECT_TRUE(kept().empty());
}

}  // namespace
}  // namespace lockstep
