#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "base/file.h"
#include "base/sha256.h"
#include "train/checkpoint/checkpoint_case.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

TEST(Checkpoint, GivesBackWhatWasWritten) {
  const RunFolder run;
  EXPECT_FALSE(latest_checkpoint(run.path()));
  EXPECT_TRUE(list_checkpoints(run.path() + "/absent").empty());
  CheckpointWriter writer(run.path(), 0);
  const CheckpointInfo written = writer.write(ToyState(20).content());
  EXPECT_EQ(written.path, run.path() + "/checkpoint-20");
  EXPECT_EQ(run.names(), std::vector<std::string>{"checkpoint-20"});
  expect_holds(latest_checkpoint(run.path()).value());
  EXPECT_EQ(read_file(written.path + "/config.json"), "{}\n");
}

TEST(Checkpoint, HashesAreThoseOfSha256sum) {
  const RunFolder run;
  CheckpointWriter(run.path(), 0).write(ToyState(1).content());
  const std::string command = "cd " + run.path() + "/checkpoint-1 && sha256sum --quiet -c manifest.sha256";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_NE(read_file(run.path() + "/checkpoint-1/manifest.json")
                .find(sha256(read_file(run.path() + "/checkpoint-1/state.json"))),
            std::string::npos);
}

TEST(Checkpoint, KeepsTheNewestAndTheBest) {
  const RunFolder run;
  CheckpointWriter writer(run.path(), 2);
  for (const int64_t step : {5, 10, 100, 20}) {
    const ToyState state(step);  // the content points into it
    CheckpointContent content = state.content();
    content.best = step == 5;
    writer.write(content);
  }
  EXPECT_EQ(run.steps(), (std::vector<int64_t>{5, 20, 100}));
  EXPECT_EQ(latest_checkpoint(run.path())->step, 100);
  EXPECT_EQ(best_checkpoint(run.path())->step, 5);
  EXPECT_TRUE(fs::exists(run.path() + "/best/model.safetensors"));

  const ToyState better_state(200);
  CheckpointContent better = better_state.content();
  better.best = true;
  writer.write(better);
  EXPECT_EQ(run.steps(), (std::vector<int64_t>{100, 200}));
  EXPECT_EQ(best_checkpoint(run.path())->step, 200);
  writer.discard_after(100);
  EXPECT_EQ(run.steps(), (std::vector<int64_t>{100}));
  EXPECT_FALSE(best_checkpoint(run.path()));
}

TEST(Checkpoint, ReplacesOneOfTheSameStep) {
  const RunFolder run;
  CheckpointWriter writer(run.path(), 0);
  const ToyState other_state(10, 3);
  CheckpointContent other = other_state.content();
  writer.write(other);
  writer.write(ToyState(10).content());
  expect_holds(latest_checkpoint(run.path()).value());
  EXPECT_EQ(run.names(), std::vector<std::string>{"checkpoint-10"});
}

TEST(Checkpoint, TakesOnlyCompleteFoldersAndRemovesWhatKilledProcessesLeft) {
  const RunFolder run;
  CheckpointWriter(run.path(), 0).write(ToyState(10).content());
  for (const char* name :
       {"checkpoint-30.tmp-99", "checkpoint-10.tmp-99-old", "checkpoint-040", "checkpoint-50", "checkpoint-x",
        "checkpoint--1", "checkpoint-99999999999999999999", "notes.tmp-1"})
    fs::create_directories(run.path() + "/" + name);
  write_file(run.path() + "/checkpoint-30.tmp-99/manifest.sha256", "");
  write_file(run.path() + "/checkpoint-040/manifest.sha256", "");
  EXPECT_EQ(run.steps(), std::vector<int64_t>{10});
  const CheckpointWriter next(run.path(), 0);
  EXPECT_EQ(run.names(),
            (std::vector<std::string>{"checkpoint--1", "checkpoint-040", "checkpoint-10", "checkpoint-50",
                                      "checkpoint-99999999999999999999", "checkpoint-x", "notes.tmp-1"}));
}

TEST(Checkpoint, OneWriterPerRun) {
  const RunFolder run;
  auto first = std::make_unique<CheckpointWriter>(run.path(), 0);
  EXPECT_EQ(user_error([&] { CheckpointWriter(run.path(), 0); }),
            "another process writes into " + run.path() + "; end it, or choose another output folder");
  first.reset();
  EXPECT_NO_THROW(CheckpointWriter(run.path(), 0));
}

class DamagedCheckpoint : public ::testing::Test {
 protected:
  DamagedCheckpoint() {
    CheckpointWriter writer(run_.path(), 0);
    info_ = writer.write(ToyState(3).content());
    for (const auto& entry : fs::directory_iterator(info_.path))
      files_.push_back(entry.path().filename().string());
  }
  std::string path_of(const std::string& file) const { return info_.path + "/" + file; }
  std::string load() const {
    return user_error([&] { CheckpointReader reader(info_.path); });
  }
  void overwrite(const std::string& file, const std::string& bytes) const {
    std::ofstream(path_of(file), std::ios::binary | std::ios::trunc) << bytes;
  }

  RunFolder run_;
  CheckpointInfo info_;
  std::vector<std::string> files_;
};

TEST_F(DamagedCheckpoint, AnyFlippedBitIsFoundAndItsFileNamed) {
  ASSERT_EQ(files_.size(), 6U);
  std::mt19937 random(3);
  for (const std::string& file : files_) {
    const std::string good = read_file(path_of(file));
    for (int i = 0; i < 200; ++i) {
      std::string bad = good;
      const size_t at = i == 0 ? 0 : i == 1 ? good.size() - 1 : random() % good.size();
      bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
      overwrite(file, bad);
      const std::string said = load();
      ASSERT_NE(said.find(file), std::string::npos) << file << " byte " << at << ": " << said;
    }
    overwrite(file, good);
    ASSERT_EQ(load(), "no error");
  }
}

TEST_F(DamagedCheckpoint, AnyTruncationAndAnyMissingFileIsFound) {
  std::mt19937 random(4);
  for (const std::string& file : files_) {
    const std::string good = read_file(path_of(file));
    for (int i = 0; i < 20; ++i) {
      overwrite(file, good.substr(0, i == 0 ? 0 : i == 1 ? good.size() - 1 : random() % good.size()));
      ASSERT_NE(load().find(file), std::string::npos) << load();
    }
    overwrite(file, good + "x");
    ASSERT_NE(load().find(file), std::string::npos) << load();
    fs::remove(path_of(file));
    ASSERT_NE(load().find(file), std::string::npos) << load();
    overwrite(file, good);
  }
}

TEST_F(DamagedCheckpoint, TheTensorIsNamedAlsoIfItsHeaderIsIntact) {
  std::string bytes = read_file(path_of(kOptimizerFile));
  bytes[bytes.size() - 100] ^= 1;
  overwrite(kOptimizerFile, bytes);
  EXPECT_NE(load().find("optimizer.safetensors was changed after it was written in tensor moment1.w (bytes "),
            std::string::npos)
      << load();
  bytes[bytes.size() - 100] ^= 1;
  bytes[20] ^= 1;
  overwrite(kOptimizerFile, bytes);
  EXPECT_NE(load().find("in its header"), std::string::npos) << load();
}

TEST_F(DamagedCheckpoint, AManifestCannotPointOutOfItsFolder) {
  std::string manifest = read_file(path_of("manifest.json"));
  const size_t at = manifest.find("config.json");
  manifest.replace(at, 11, "../config.j");
  overwrite("manifest.json", manifest);
  overwrite("manifest.sha256", sha256(manifest) + "  manifest.json\n");
  EXPECT_NE(load().find("is no name of a file in a checkpoint"), std::string::npos) << load();
}

}  // namespace
}  // namespace lockstep
