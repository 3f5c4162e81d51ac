// Whom and what a run trusts: data files that change under a kept fingerprint, what is written beside data,
// names that others have chosen, and how often it was started.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "base/cores.h"
#include "run/control_group.h"
#include "run/train_case.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

constexpr const char* kJob = R"(
name: trust
model: {family: tabular, dim: 4, rows: 1000, bottom: [8], top: [8]}
data: {train: {format: csv, files: unset, label: y}, hold_out: 0.1, seed: 3}
train: {steps: 8, global_batch: 16, microbatch: 4, lr: {base: 1e-2, warmup: 2, decay: constant}}
checkpoint: {every: 4}
)";

std::string table(int first) {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 200; ++i)
    text += std::to_string((i * 7 + first) % 10) + ",c" + std::to_string(i % 5) + "," +
            std::to_string(i % 2) + "\n";
  return text;
}

class TrustRun : public ::testing::Test {
 protected:
  TrustRun() { job_.folder().write("data/t.csv", table(0)); }

  std::string data() const { return job_.folder().path("data/t.csv"); }
  Names settings(Names more = {}) const {
    more.push_back("data.train.files=" + data());
    return more;
  }
  std::vector<std::string> names_beside_data() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(job_.folder().path("data")))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  Ended lockstep(Names arguments, const Names& more) const {
    for (const std::string& setting : settings(more)) arguments.insert(arguments.end(), {"--set", setting});
    return LockstepProcess(arguments, job_.log("command")).wait();
  }

  TrainCase job_{kJob};
};

TEST_F(TrustRun, AChangedFileOfEqualSizeAndTimeIsNotResumedInto) {
  const std::string before = job_.trained("run", settings()).identity_sha256;
  struct stat status {};
  ASSERT_EQ(stat(data().c_str(), &status), 0);
  std::ofstream(data(), std::ios::binary | std::ios::in) << table(3);
  const timespec times[2] = {status.st_mtim, status.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, data().c_str(), times, 0), 0);
  const Ended refused = job_.train("run", settings({"train.steps=12"}));
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_NE(refused.err.find("data.train: checkpoint "), std::string::npos) << refused.err;
  EXPECT_NE(job_.trained("other", settings()).identity_sha256, before);
  // With its content it has its identity again, whatever happened to the file.
  job_.folder().write("data/t.csv", table(0));
  EXPECT_EQ(job_.trained("run", settings({"train.steps=12"})).identity_sha256, before);
}

TEST_F(TrustRun, CheckWritesNothingBesideTheData) {
  for (const Names& more : {Names{}, Names{"data.cache=rows"}, Names{"data.filter=a > 2"}}) {
    const Ended checked = lockstep({"check", job_.folder().path("job.yaml")}, more);
    EXPECT_EQ(checked.code, 0) << checked.err;
    EXPECT_EQ(names_beside_data(), Names{"t.csv"});
  }
  const Ended checked = lockstep({"check", job_.folder().path("job.yaml")}, {});
  const std::string identity = job_.trained("run", settings()).identity_sha256;
  EXPECT_NE(checked.out.find("# identity " + identity), std::string::npos) << checked.out;
  EXPECT_EQ(names_beside_data(), (Names{".lockstep-index", "t.csv"}));
}

TEST_F(TrustRun, TheIndexFolderTakesWhatWouldLieBesideTheData) {
  const std::string folder = job_.folder().path("kept");
  const RunSummary beside = job_.trained("beside", settings());
  fs::remove_all(job_.folder().path("data/.lockstep-index"));
  for (const char* run : {"first", "second"}) {
    const RunSummary found =
        job_.trained(run, settings({"data.index_folder=" + folder, "data.cache=rows", "data.filter=a >= 0"}));
    EXPECT_EQ(found.steps, beside.steps);
    EXPECT_EQ(names_beside_data(), Names{"t.csv"}) << run;
  }
  int indexes = 0, rows = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    indexes += entry.path().extension() == ".idx" ? 1 : 0;
    rows += entry.path().extension() == ".rows" ? 1 : 0;
  }
  EXPECT_GE(indexes, 1);
  EXPECT_GE(rows, 1);
  EXPECT_EQ(job_.trained("named", settings({"data.index_folder=" + folder})).identity_sha256,
            beside.identity_sha256);
}

TEST_F(TrustRun, ControlCharactersOfNamesDoNotReachTheTerminal) {
  job_.folder().write("data/evil\x1b[2J\x1b]0;t\x07.csv", "a,b,y\n1,c,0\n2,d\n");
  const std::string found = job_.folder().path("data/evil*.csv");
  const std::string missing = "\"" + job_.folder().path("no\\x1b[2J.csv") + "\"";
  for (const std::string& files : {found, missing}) {
    const Ended ended = job_.train("run", {"data.train.files=" + files, "data.hold_out=0"});
    EXPECT_NE(ended.code, 0);
    EXPECT_NE(ended.err.find("?[2J"), std::string::npos) << ended.err;
    EXPECT_EQ(ended.err.find('\x1b'), std::string::npos) << ended.err;
    EXPECT_EQ(ended.err.find('\x07'), std::string::npos) << ended.err;
  }
}

// Starts that ended before they could save anything count too.
TEST_F(TrustRun, RestartsCountsEveryRestart) {
  for (int start = 0; start < 2; ++start) {
    const Ended full =
        LockstepProcess(job_.arguments("run", settings()), job_.log("run"), {.file_limit = 8000}).wait();
    EXPECT_EQ(full.code, 1) << full.err;
    EXPECT_EQ(job_.summary("run").restarts, start);
  }
  EXPECT_EQ(job_.trained("run", settings({"train.steps=6"})).restarts, 2);
  // From a checkpoint, and again before the next.
  EXPECT_EQ(
      LockstepProcess(job_.arguments("run", settings()), job_.log("run"), {.file_limit = 8000}).wait().code,
      1);
  EXPECT_EQ(job_.trained("run", settings()).restarts, 4);
  EXPECT_EQ(job_.trained("run", settings(), {"--fresh"}).restarts, 0);
  EXPECT_EQ(job_.trained("run", settings({"train.seed=9"}), {"--fresh"}).restarts, 0);
}

TEST_F(TrustRun, ThreadsFollowAQuotaOfProcessorTime) {
  if (available_cores().usable < 2) GTEST_SKIP() << "there is one core only";
  const ControlGroup group(ControlGroup::Quota{1});
  if (!group.why_not().empty()) GTEST_SKIP() << group.why_not();
  const Ended ended = LockstepProcess(job_.arguments("run", settings()), job_.log("run"),
                                      {.control_group = group.processes()})
                          .wait();
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(job_.summary("run").threads_per_worker, 1);
  EXPECT_GT(job_.trained("free", settings()).threads_per_worker, 1);
}

}  // namespace
}  // namespace lockstep
