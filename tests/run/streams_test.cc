// Standard streams as they should not be: closed, full, a pipe that nobody reads. The run is saved, and what
// cannot be written is said.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "run/train_case.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace lockstep {
namespace {

Ended run_in(const TrainCase& job, const std::vector<std::string>& arguments,
             const Surroundings& surroundings) {
  return LockstepProcess(arguments, job.log("stream"), surroundings).wait();
}

std::vector<std::string> check(const TrainCase& job) { return {"check", job.folder().path("job.yaml")}; }

TEST(Streams, AFullDeviceIsSaid) {
  const TrainCase job(kGptJob);
  const FileDescriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  const Ended ended = run_in(job, check(job), {.out = full.number()});
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.err, "lockstep: cannot write standard output: No space left on device\n");
  // What was trained is there, whoever can be told of it.
  const Ended trained = run_in(job, job.arguments("run", {}), {.out = full.number()});
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.err.find("cannot write standard output: No space left on device"), std::string::npos);
  EXPECT_EQ(job.summary("run").status, "done");
}

TEST(Streams, AFullDeviceIsSaidByTheLauncher) {
  const TrainCase job(kGptJob);
  const FileDescriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  const Ended ended = run_in(job, job.arguments("run", {"strategy.workers=2"}), {.out = full.number()});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(
      ended.err.find("lockstep: cannot write standard output: No space left on device; all lines are in " +
                     job.output("run") + "/logs"),
      std::string::npos)
      << ended.err;
}

TEST(Streams, AClosedOutputIsSaid) {
  const TrainCase job(kGptJob);
  const Ended ended = run_in(job, check(job), {.closed = {1}});
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.err, "lockstep: cannot write standard output: Bad file descriptor\n");
}

// Files that the run opens must not get the numbers of the streams: what it says would be written into them.
TEST(Streams, NoFileTakesThePlaceOfAClosedStream) {
  const TrainCase job(kGptJob);
  const std::string weights = job.trained("whole").weights_sha256;
  const std::vector<std::vector<int>> ways = {{0}, {1, 2}, {0, 1, 2}};
  for (size_t i = 0; i < ways.size(); ++i) {
    const std::string run = "run" + std::to_string(i);
    EXPECT_EQ(run_in(job, job.arguments(run, {}), {.closed = ways[i]}).code, 0);
    EXPECT_EQ(job.summary(run).weights_sha256, weights);
    expect_same_steps(job.metrics(run), job.metrics("whole"));
    // Every byte of its checkpoint is as it was written: it is read again.
    EXPECT_EQ(job.train(run).code, 0);
  }
  EXPECT_EQ(run_in(job, job.arguments("workers", {"strategy.workers=2"}), {.closed = {0, 1, 2}}).code, 0);
  EXPECT_EQ(job.summary("workers").weights_sha256, weights);
}

// `lockstep train job.yaml 2>&1 | head -1`: SIGPIPE must not end the run.
TEST(Streams, AReaderWhoHasGoneEndsNoRun) {
  const TrainCase job(kGptJob);
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[0]);
  const FileDescriptor nobody(ends[1]);
  const Ended ended = run_in(job, job.arguments("run", {}), {.out = nobody.number(), .err = nobody.number()});
  EXPECT_EQ(ended.code, 0) << "ended by signal " << ended.signal;
  EXPECT_EQ(job.summary("run").status, "done");
}

// A disk that is full, or `ulimit -f`: said with the reason, in the run's own files too
// (refused_run_test.cc).
TEST(Streams, AFileThatGrowsPastItsLimitIsNamedWithTheReason) {
  const TrainCase job(kGptJob);
  const Ended ended = run_in(job, job.arguments("run", {}), {.file_limit = 300});
  EXPECT_EQ(ended.signal, 0);
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_NE(ended.err.find("File too large; the file is larger than the limit"), std::string::npos)
      << ended.err;
}

}  // namespace
}  // namespace lockstep
