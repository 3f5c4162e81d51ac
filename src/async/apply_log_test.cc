#include "async/apply_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "base/error.h"
#include "base/file.h"
#include "base/test_folder.h"

namespace lockstep::async {
namespace {

const LogHeader kHeader{.staleness = 3, .servers = 2, .identity = std::string(64, 'a')};
const std::vector<AppliedPush> kPushes = {{.lease = 1, .read = 0},
                                          {.lease = 3, .read = 0},
                                          {.lease = 2, .read = 0, .skipped = true},
                                          {.lease = 4, .read = 3}};

std::string error_of(const std::string& bytes) {
  try {
    parse_log(bytes, "pushes.log");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(ApplyLog, ReadsBackWhatWasWritten) {
  const ApplyLog log = parse_log(log_bytes(kHeader, kPushes), "pushes.log");
  EXPECT_EQ(log.header, kHeader);
  EXPECT_EQ(log.pushes, kPushes);
  EXPECT_EQ(log.tail_bytes, 0);
}

TEST(ApplyLog, TakesTenBytesAPush) {
  const size_t header = log_bytes(kHeader, {}).size();
  EXPECT_EQ(log_bytes(kHeader, kPushes).size() - header, 10 * kPushes.size());
}

// Cut at any byte, what remains is a prefix of the pushes and a tail that is no push.
TEST(ApplyLog, EndsBeforeATornTail) {
  const std::string bytes = log_bytes(kHeader, kPushes);
  const size_t header = log_bytes(kHeader, {}).size();
  for (size_t cut = header; cut < bytes.size(); ++cut) {
    const ApplyLog log = parse_log(std::string_view(bytes).substr(0, cut), "pushes.log");
    EXPECT_EQ(log.pushes.size(), (cut - header) / 10) << cut;
    EXPECT_EQ(log.tail_bytes, static_cast<int64_t>((cut - header) % 10)) << cut;
    EXPECT_EQ(log.whole_bytes + log.tail_bytes, static_cast<int64_t>(cut));
  }
}

// Zeros are what a file system may leave of what was not synced.
TEST(ApplyLog, EndsBeforeZeros) {
  const ApplyLog log = parse_log(log_bytes(kHeader, kPushes) + std::string(4096, '\0'), "pushes.log");
  EXPECT_EQ(log.pushes, kPushes);
  EXPECT_EQ(log.tail_bytes, 4096);
}

TEST(ApplyLog, FindsEveryChangedByte) {
  const std::string bytes = log_bytes(kHeader, kPushes);
  const size_t header = log_bytes(kHeader, {}).size();
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    if (at < header) {
      EXPECT_NE(error_of(changed), "") << at;
    } else {
      EXPECT_EQ(parse_log(changed, "pushes.log").pushes.size(), (at - header) / 10) << at;
    }
  }
}

TEST(ApplyLog, RefusesWhatNoRunWrites) {
  EXPECT_NE(error_of(log_bytes(kHeader, {{.lease = 1, .read = 0}, {.lease = 1, .read = 0}}))
                .find("push 2 is of lease 1, which was applied before"),
            std::string::npos);
  std::vector<AppliedPush> old = kPushes;
  old.push_back({.lease = 5, .read = 0});
  EXPECT_NE(error_of(log_bytes(kHeader, old)).find("push 5 is 4 versions old, and the bound is 3"),
            std::string::npos);
  EXPECT_NE(error_of(log_bytes(kHeader, {{.lease = 0, .read = 0}})).find("does not exist"),
            std::string::npos);
  EXPECT_NE(error_of("no log").find("is not the log of an asynchronous run"), std::string::npos);
}

TEST(LogWriter, GoesOnWhereItIsToldTo) {
  const TestFolder folder;
  const std::string path = folder.path("pushes.log");
  {
    LogWriter writer(path, kHeader, {});
    for (const AppliedPush& push : kPushes) writer.append(push);
    writer.sync();
  }
  EXPECT_EQ(read_file(path), log_bytes(kHeader, kPushes));
  const std::vector<AppliedPush> kept(kPushes.begin(), kPushes.begin() + 2);
  LogWriter writer(path, kHeader, kept);
  const AppliedPush other{.lease = 5, .read = 1};
  writer.append(other);
  EXPECT_EQ(writer.pushes(), 3);
  std::vector<AppliedPush> expected = kept;
  expected.push_back(other);
  EXPECT_EQ(read_log(path).pushes, expected);
}

// A file that may not grow is what a full disk is: the push is an error, and what was written before is
// whole.
TEST(LogWriter, SaysThatTheDiskIsFull) {
  const TestFolder folder;
  const std::string path = folder.path("pushes.log");
  LogWriter writer(path, kHeader, {});
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = static_cast<rlim_t>(log_bytes(kHeader, {}).size() + 25);
  setrlimit(RLIMIT_FSIZE, &small);
  std::string error;
  try {
    for (const AppliedPush& push : kPushes) writer.append(push);
  } catch (const UserError& caught) {
    error = caught.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(error.find("cannot write " + path), std::string::npos) << error;
  const ApplyLog log = read_log(path);
  EXPECT_EQ(log.pushes.size(), 2u);
  EXPECT_EQ(log.tail_bytes, 5);
}

TEST(LogWriter, NamesTheFileThatItCannotWrite) {
  const TestFolder folder;
  try {
    LogWriter writer(folder.path("none/pushes.log"), kHeader, {});
    FAIL() << "wrote into a folder that is not there";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("pushes.log"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::async
