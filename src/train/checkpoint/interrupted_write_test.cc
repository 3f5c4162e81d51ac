// Writers that are killed, and disks that are full: the last complete checkpoint stays complete.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "base/durable_file.h"
#include "train/checkpoint/checkpoint_case.h"

namespace lockstep {
namespace {

constexpr int64_t kElements = 200'000;

// In a process of its own: goes on from the latest checkpoint without end, and says when it has written one.
[[noreturn]] void write_until_killed(const std::string& run, bool in_background, int report) {
  try {
    const std::optional<CheckpointInfo> last = latest_checkpoint(run);
    ToyState state(last ? last->step : 0, kElements);
    BackgroundCheckpointWriter writer(run, 2);
    for (int64_t step = state.step + 1;; ++step) {
      state.set(step);
      CheckpointContent content = state.content();
      content.best = step % 3 == 0;
      writer.save(std::move(content), nullptr);
      if (!writer.read_within(std::chrono::hours(1))) break;
      state.set(-1);
      if (!in_background || step % 4 == 0) writer.finish();
      if (writer.last() && ::write(report, "c", 1) != 1) break;
    }
  } catch (...) {
  }
  ::_exit(1);
}

TEST(InterruptedWrite, AKilledWriterLeavesACompleteLatestCheckpoint) {
  const RunFolder run;
  std::mt19937 random(5);
  int64_t last_step = 0;
  int leftovers = 0;
  for (int round = 0; round < 20; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) write_until_killed(run.path(), round % 2 == 1, ends[1]);
    FileDescriptor read_end(ends[0]);
    FileDescriptor(ends[1]).close();
    char byte = 0;
    ASSERT_EQ(::read(read_end.number(), &byte, 1), 1) << "the writer ended by itself";
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "round " << round;

    const std::optional<CheckpointInfo> latest = latest_checkpoint(run.path());
    ASSERT_TRUE(latest);
    EXPECT_GT(latest->step, last_step);
    last_step = latest->step;
    for (const CheckpointInfo& checkpoint : list_checkpoints(run.path())) expect_holds(checkpoint, kElements);
    for (const std::string& name : run.names()) leftovers += name.find(".tmp-") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(leftovers, 0) << "no kill fell into a write";
  const CheckpointWriter cleaned(run.path(), 0);
  for (const std::string& name : run.names()) EXPECT_EQ(name.find(".tmp-"), std::string::npos);
}

// Lets files of this process grow to so many bytes, as a full disk would.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(InterruptedWrite, AFullDiskAtAnyByteLeavesThePreviousCheckpoint) {
  const RunFolder run;
  CheckpointWriter writer(run.path(), 1);
  const CheckpointInfo previous = writer.write(ToyState(1).content());
  for (const int64_t step : {1, 2}) {
    for (const rlim_t bytes : {0, 1, 50, 100, 300, 1000, 2000, 2300, 4000, 4095}) {
      const std::string said = [&] {
        const FileSizeLimit limit(bytes);
        return user_error([&] { writer.write(ToyState(step).content()); });
      }();
      EXPECT_EQ(said.find("checkpoint " + std::to_string(step) + " was not saved: cannot write"), 0U) << said;
      EXPECT_NE(said.find("the last complete one is " + previous.path), std::string::npos) << said;
      EXPECT_EQ(run.names(), std::vector<std::string>{"checkpoint-1"});
      expect_holds(latest_checkpoint(run.path()).value());
    }
  }
  writer.write(ToyState(2).content());
  expect_holds(latest_checkpoint(run.path()).value());
  EXPECT_EQ(run.steps(), std::vector<int64_t>{2});
}

TEST(InterruptedWrite, SaysThatTheDiskIsFullAndWhatToDo) {
  DurableFile file("/dev/full");
  EXPECT_EQ(
      user_error([&] { file.write("bytes"); }),
      "cannot write more than 0 bytes of /dev/full: No space left on device; free some space, or keep fewer "
      "checkpoints");
}

TEST(InterruptedWrite, TheBackgroundWriterReportsAtTheNextCallAndGoesOn) {
  const RunFolder run;
  BackgroundCheckpointWriter writer(run.path(), 0);
  save_toy(writer, 1);
  writer.finish();
  {
    const FileSizeLimit limit(100);
    EXPECT_NO_THROW(save_toy(writer, 2));
    EXPECT_EQ(user_error([&] { save_toy(writer, 3); }).find("checkpoint 2 was not saved"), 0U);
  }
  EXPECT_NO_THROW(save_toy(writer, 4));
  EXPECT_NO_THROW(writer.finish());
  EXPECT_EQ(run.steps(), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(writer.last()->step, 4);
}

}  // namespace
}  // namespace lockstep
