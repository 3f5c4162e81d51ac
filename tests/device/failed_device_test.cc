// A device that fails in the middle of a run: the error is told, what was saved stays whole, and the run goes
// on from it to the bits of one that was never interrupted.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/test_folder.h"
#include "device/late_backend.h"
#include "job/parse.h"
#include "observe/summary.h"
#include "run/resume.h"
#include "run/train_run.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/training_checkpoints.h"

namespace lockstep {
namespace {

const char* const kJob = R"(
name: failing
model: {family: gpt, layers: 1, dim: 16, heads: 2, vocab: 31, seq: 8}
data: {train: {format: synthetic, samples: 64}, seed: 3}
train:
  steps: 9
  global_batch: 4
  microbatch: 2
  optimizer: {name: adamw}
  lr: {base: 1e-3}
checkpoint: {every: 3, keep: 2}
)";

class Case {
 public:
  Case() { folder_.write("job.yaml", kJob); }

  RunSummary train(const std::string& name, int64_t fails_at = 0) {
    std::ostringstream out;
    RunOptions options{.out = &out, .out_descriptor = -1};
    options.device = [fails_at] { return testing::make_failing_late_backend(1, fails_at); };
    const std::vector<std::string> settings = {"output=" + output(name)};
    TrainRun run(load_job(folder_.path("job.yaml"), settings), options);
    return run.run();
  }
  std::string output(const std::string& name) const { return folder_.path(name); }
  RunSummary summary(const std::string& name) const { return read_summary(output(name) + "/summary.json"); }

  // What a run says that is expected to fail at this kernel; "" where it does not.
  std::string failure(const std::string& name, int64_t fails_at) {
    try {
      train(name, fails_at);
    } catch (const DeviceError& error) {
      return error.what();
    }
    return "";
  }

 private:
  TestFolder folder_;
};

TEST(FailedDevice, IsToldWithWhatIsKept) {
  Case one;
  const std::string told = one.failure("early", 5);
  EXPECT_NE(told.find("kernel 5 was made to fail"), std::string::npos) << told;
  EXPECT_NE(told.find("noticed in step 1, before any checkpoint"), std::string::npos) << told;
  const RunSummary summary = one.summary("early");
  EXPECT_EQ(summary.status, "failed");
  EXPECT_EQ(summary.exit_code, 1);
  EXPECT_EQ(summary.error, told);
  EXPECT_TRUE(summary.weights_sha256.empty());
}

TEST(FailedDevice, LeavesItsLastCheckpointWholeAndTheRunGoesOnFromIt) {
  Case one;
  const std::string expected = one.train("whole").weights_sha256;
  // From the first step to behind the last, wherever it falls.
  int failed = 0, resumed = 0;
  for (int64_t kernel = 1;; kernel += kernel / 4 + 29) {
    const std::string name = fmt::format("at-{}", kernel);
    const std::string told = one.failure(name, kernel);
    if (told.empty()) break;
    ++failed;
    for (const CheckpointInfo& kept : list_checkpoints(one.output(name))) {
      EXPECT_NO_THROW(open_checkpoint(kept.path)) << kept.path;
      ++resumed;
    }
    EXPECT_EQ(one.train(name).weights_sha256, expected) << told;
  }
  EXPECT_GT(failed, 3);
  EXPECT_GT(resumed, 0);
}

}  // namespace
}  // namespace lockstep
