// The tools of `lockstep data` on generated transactions, through the program itself.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "run/lockstep_process.h"
#include "run/train_case.h"

namespace lockstep {
namespace {

constexpr const char* kJob = R"(
name: tools
model: {family: tabular, dim: 4, rows: 50, bottom: [8], top: [8]}
data: {train: {format: csv, files: unset, label: is_fraud}, hold_out: 0.1, seed: 3}
train:
  steps: 30
  global_batch: 64
  microbatch: 4
  lr: {base: 1e-2}
strategy: {threads: 2}
)";

class DataTools : public ::testing::Test {
 protected:
  DataTools() {
    const Ended synth = lockstep(
        {"data", "synth", "fraud", "--rows", "2000", "--shards", "3", "--out", job_.folder().path("tx")});
    EXPECT_EQ(synth.code, 0) << synth.err;
  }

  Ended lockstep(const std::vector<std::string>& arguments) const {
    return LockstepProcess(arguments, job_.log("tool")).wait();
  }
  Ended tool(const std::string& name, const std::vector<std::string>& arguments = {}) const {
    std::vector<std::string> all = {"data", name, job_.folder().path("job.yaml"), "--set",
                                    "data.train.files=" + job_.folder().path("tx/train-*.csv")};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return lockstep(all);
  }
  const TrainCase& job() const { return job_; }

 private:
  TrainCase job_{kJob};
};

void expect_says(const Ended& ended, const std::vector<std::string>& words) {
  EXPECT_EQ(ended.code, 0) << ended.err;
  for (const std::string& word : words) EXPECT_NE(ended.out.find(word), std::string::npos) << ended.out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

TEST_F(DataTools, IndexLeavesSidecarsThatAreUsedAgain) {
  const auto written = [&] {
    std::map<std::string, std::filesystem::file_time_type> times;
    for (const auto& entry : std::filesystem::directory_iterator(job().folder().path("tx/.lockstep-index")))
      if (entry.path().extension() == ".idx") times[entry.path().string()] = entry.last_write_time();
    return times;
  };
  expect_says(tool("index"), {"training: 1600 records in 3 shards"});
  const auto times = written();
  EXPECT_EQ(times.size(), 3U);
  expect_says(tool("index"), {"training: 1600 records in 3 shards"});
  EXPECT_EQ(written(), times);
}

TEST_F(DataTools, IndexOfGeneratedRecordsHasNothingToDo) {
  expect_says(tool("index", {"--set", "data.train.format=synthetic", "--set", "data.train.files=", "--set",
                             "data.train.samples=600", "--set", "data.train.label="}),
              {"nothing to index"});
}

TEST_F(DataTools, InspectNamesShardsColumnsAndFingerprints) {
  const Ended inspected = tool("inspect");
  expect_says(inspected,
              {"csv: 1600 records in 3 shards", "tx/train-00000-of-00003.csv: 533 records", "amount f64",
               "bad records that are left out: 0", "training: 1440 records, fingerprint ",
               "evaluation: 160 records, fingerprint ", "labels f32[]",
               "a step reads 64 samples in 16 microbatches", "an epoch is 22.5 steps"});
  EXPECT_EQ(tool("inspect").out, inspected.out);
}

// What `at` says must be what lies in the file at the line that it names.
TEST_F(DataTools, AtShowsTheLineOfTheFile) {
  const Ended at = tool("at", {"100", "--inputs"});
  expect_says(at, {"position 100: epoch 0, step 2, microbatch ", "record ",
                   "amount = ", "inputs of the model", "labels = "});
  const std::vector<std::string> said = lines_of(at.out);
  ASSERT_GT(said.size(), 2U);
  const size_t place = said[1].find(": ") + 2, colon = said[1].rfind(':');
  const std::vector<std::string> rows = lines_of(read_file(said[1].substr(place, colon - place)));
  const std::string& row = rows.at(std::stoul(said[1].substr(colon + 1)) - 1);
  for (const std::string& line : said)
    if (line.starts_with("  merchant = ")) {
      const std::string name = line.substr(line.find('"') + 1, line.rfind('"') - line.find('"') - 1);
      EXPECT_NE(("," + row + ",").find("," + name + ","), std::string::npos) << line << " is not in " << row;
    }
}

TEST_F(DataTools, AStepHasTheRecordsOfItsPositions) {
  const std::vector<std::string> step = lines_of(tool("at", {"--step", "23"}).out);
  ASSERT_EQ(step.size(), 65U);
  std::set<std::string> positions;
  bool first_epoch = false, second_epoch = false;
  for (size_t i = 1; i < step.size(); ++i) {
    std::vector<std::string> parts;
    std::stringstream line(step[i]);
    for (std::string part; std::getline(line, part, '\t');) parts.push_back(part);
    ASSERT_EQ(parts.size(), 6U);
    positions.insert(parts[2]);
    first_epoch = first_epoch || parts[3] == "0";
    second_epoch = second_epoch || parts[3] == "1";
    if (i % 20 != 1) continue;
    expect_says(tool("at", {parts[2]}), {"record " + parts[4] + " of 1440: " + parts[5] + "\n"});
  }
  EXPECT_EQ(positions.size(), 64U);
  EXPECT_TRUE(first_epoch && second_epoch) << "the step lies across the end of the epoch";
}

TEST_F(DataTools, AtTakesAPositionOrAStep) {
  EXPECT_EQ(tool("at").code, 2);
  EXPECT_EQ(tool("at", {"5", "--step", "1"}).code, 2);
  EXPECT_EQ(tool("at", {"--", "-1"}).code, 2);
}

TEST_F(DataTools, VerifyProvesAnEpochForAllWorkerCounts) {
  for (const std::string epoch : {"0", "1"}) {
    const Ended verified = tool("verify", {"--workers", "1,2,3,7,8", "--epoch", epoch, "--read"});
    expect_says(verified,
                {"3 workers: every record exactly once, sequence ", "8 workers: content ",
                 "epoch " + epoch +
                     ": each of 1440 records exactly once, in one sequence for 1, 2, 3, 7, 8 workers"});
    EXPECT_EQ(verified.out.find("ANOTHER"), std::string::npos) << verified.out;
  }
  expect_says(tool("verify", {"--set", "data.shuffle=none"}), {"epoch 0: each of 1440 records exactly once"});
}

TEST_F(DataTools, VerifyRefusesMoreWorkersThanLeaves) {
  const Ended refused = tool("verify", {"--workers", "17"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("17"), std::string::npos) << refused.err;
}

TEST_F(DataTools, ShuffleReportTellsNoneFromBlock) {
  expect_says(tool("shuffle-report", {"--all"}),
              {"shuffle block: 1440 of 1440 records", "at lags 1 to 64", "a random order: 0.3333", "\n64\t"});
  expect_says(tool("shuffle-report", {"--set", "data.shuffle=none"}),
              {"displacement: 0.0000", "at lags 1 to 64: at most 0.99"});
}

}  // namespace
}  // namespace lockstep
