// Runs on files with records that cannot be read: the policy of the job decides, through the program itself.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "data/testing/test_corpora.h"
#include "run/train_case.h"

namespace lockstep {
namespace {

constexpr const char* kJob = R"(
name: faults
model: {family: tabular, dim: 4, rows: 50, bottom: [8], top: [8]}
data: {train: {format: csv, files: unset, label: y}, hold_out: 0.1, seed: 3, shuffle: none}
train:
  steps: 12
  global_batch: 16
  microbatch: 4
  lr: {base: 1e-2}
strategy: {leaves: 4, threads: 1}
)";

constexpr int kRows = 400;

std::string row(int i) { return fmt::format("{},k{},{}\n", i % 17, i * 3 % 29, i % 2); }

std::string table(int first, int end) {
  std::string text;
  for (int i = first; i < end; ++i) text += row(i);
  return text;
}

class DataFaultsRun : public testing::Test {
 protected:
  DataFaultsRun() {
    const std::string before = "a,b,y\n" + table(0, 100);
    bad_at_ = before.size();
    job_.folder().write("bad/t.csv", before + "1,2\n" + table(100, kRows));
    job_.folder().write("good/t.csv", before + table(100, kRows));
  }

  std::string files(const std::string& folder) const { return "data.train.files=" + path(folder); }
  std::string path(const std::string& folder) const { return job_.folder().path(folder + "/t.csv"); }

  TrainCase job_{kJob};
  size_t bad_at_ = 0;
};

TEST_F(DataFaultsRun, ABadRecordEndsTheRunByFileLineAndByte) {
  const Ended ended = job_.train("stop", {files("bad")});
  EXPECT_EQ(ended.code, 2) << "found while constants are fitted, before the run begins";
  const std::string named = fmt::format("{}:102: 2 fields, but the header names 3 columns", path("bad"));
  EXPECT_NE(ended.err.find(named), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find(fmt::format("(byte {})", bad_at_)), std::string::npos) << ended.err;
}

TEST_F(DataFaultsRun, SkippedRecordsLeaveTheSameBitsAsAFileWithoutThem) {
  const RunSummary skipped =
      job_.trained("skip", {files("bad"), "data.errors.policy=skip", "data.errors.limit=0.01"});
  EXPECT_EQ(skipped.status, "done");
  EXPECT_EQ(skipped.weights_sha256, job_.trained("good", {files("good")}).weights_sha256);
}

TEST_F(DataFaultsRun, WhatWasSkippedIsListed) {
  job_.trained("skip", {files("bad"), "data.errors.policy=skip", "data.errors.limit=0.01"});
  const Ended listed =
      LockstepProcess({"data", "inspect", job_.folder().path("job.yaml"), "--set", files("bad"), "--set",
                       "data.errors.policy=skip", "--set", "data.errors.limit=0.01"},
                      job_.log("inspect"))
          .wait();
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_NE(listed.out.find("bad records that are left out: 1\n"), std::string::npos) << listed.out;
  EXPECT_NE(listed.out.find(fmt::format("{} at byte {}", path("bad"), bad_at_)), std::string::npos)
      << listed.out;
}

TEST_F(DataFaultsRun, MoreThanTheLimitEndsTheRun) {
  const Ended ended =
      job_.train("limit", {files("bad"), "data.errors.policy=skip", "data.errors.limit=0.001"});
  EXPECT_EQ(ended.code, 2);
  const std::string named = fmt::format(
      "1 of 401 records cannot be used, more than the share of 0.001 that is allowed; the first: {} at byte "
      "{}",
      path("bad"), bad_at_);
  EXPECT_NE(ended.err.find(named), std::string::npos) << ended.err;
}

// A corpus is read through when it is indexed: what no step could take ends the job before the first one.
TEST(DataFaultsInACorpus, ATokenBeyondTheVocabularyIsFoundBeforeTheRun) {
  const TrainCase job(R"(
name: tokens
model: {family: gpt, layers: 1, dim: 16, heads: 2, vocab: 64, seq: 64}
data: {train: {format: tokens, files: unset}, seed: 3, shuffle: none}
train: {steps: 25, global_batch: 64, microbatch: 32, lr: {base: 1e-2}}
strategy: {leaves: 2, threads: 1}
)");
  constexpr int kBad = 90000;  // not in the block of the first step
  std::vector<int32_t> tokens(120000, 7);
  tokens[kBad] = 64;
  job.folder().write("c.bin", llm_c_shard(tokens, false));
  const std::vector<std::string> files = {"data.train.files=" + job.folder().path("c.bin")};
  const Ended ended = job.train("run", files);
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("token 64 is not in the vocabulary of 64"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find(fmt::format("c.bin at byte {}", 1024 + 2 * kBad)), std::string::npos) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(job.output("run")));
  // One that no row has is nobody's.
  tokens[kBad] = 7;
  tokens.back() = 64;
  job.folder().write("c.bin", llm_c_shard(tokens, false));
  EXPECT_EQ(job.trained("run", files).status, "done");
}

}  // namespace
}  // namespace lockstep
