// A checkpoint with one changed byte: whichever it is, the run that meets it names the file, and the tensor
// where it lies in one, and leaves everything as it is.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/error.h"
#include "run/train_case.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/checkpoint_reader.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

void flip(const std::string& path, int64_t offset) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(offset);
  const int byte = file.get();
  file.seekp(offset);
  file.put(static_cast<char>(byte ^ 0x10));
}

// Every file below a folder with its bytes, every link with its target.
std::map<std::string, std::string> content_of(const std::string& folder) {
  std::map<std::string, std::string> content;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_symlink())
      content[entry.path()] = fs::read_symlink(entry.path());
    else if (entry.is_regular_file())
      content[entry.path()] = read_file(entry.path());
  }
  return content;
}

std::vector<fs::path> files_of(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  return files;
}

class DamagedCheckpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    case_.trained("run", settings_);
    latest_ = latest_checkpoint(case_.output("run"))->path;
    before_ = content_of(case_.output("run"));
  }

  // The run names the file and the part of it, and changes nothing.
  void expect_refused(const fs::path& file, const std::string& part = "") {
    const auto damaged = content_of(case_.output("run"));
    const Ended ended = case_.train("run", settings_);
    EXPECT_EQ(ended.code, 2) << file << ": " << ended.err;
    EXPECT_NE(ended.err.find(latest_), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find(file.filename()), std::string::npos) << file << ": " << ended.err;
    EXPECT_NE(ended.err.find(part), std::string::npos) << part << ": " << ended.err;
    EXPECT_EQ(content_of(case_.output("run")), damaged);
  }
  void expect_flip_refused(const fs::path& file, int64_t offset, const std::string& part = "") {
    SCOPED_TRACE(offset);
    flip(file, offset);
    expect_refused(file, part);
    flip(file, offset);
  }

  const std::vector<std::string> settings_ = {"train.steps=4", "train.lr.warmup=1", "train.eval.every=2"};

  TrainCase case_{kTabularJob};
  std::string latest_;
  std::map<std::string, std::string> before_;
};

TEST_F(DamagedCheckpoint, IsNamedAndLeftAsItIs) {
  const std::vector<fs::path> files = files_of(latest_);
  ASSERT_EQ(files.size(), 10U)
      << "model, optimizer, average, state, manifest, its hash, job, identity, encoding, labels";
  for (const fs::path& file : files) {
    const auto size = static_cast<int64_t>(fs::file_size(file));
    for (const int64_t offset : {int64_t{0}, size / 3, size / 2, size - 2}) expect_flip_refused(file, offset);
  }
  EXPECT_EQ(content_of(case_.output("run")), before_);
  EXPECT_EQ(case_.train("run", settings_).code, 0);
}

TEST_F(DamagedCheckpoint, TheTensorIsNamed) {
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "average.safetensors"}) {
    const std::string path = latest_ + "/" + name;
    const SafetensorsReader reader(path);
    expect_flip_refused(path, 0, "header");
    expect_flip_refused(path, 20, "header");
    expect_flip_refused(path, reader.header().data_begin, reader.tensors().front().tensor.name);
    const TensorEntry& last = reader.tensors().back();
    expect_flip_refused(path, last.begin, last.tensor.name);
    expect_flip_refused(path, last.end - 1, last.tensor.name);
  }
}

TEST_F(DamagedCheckpoint, AFileThatIsShorterLongerOrGoneIsNamed) {
  for (const fs::path& file : files_of(latest_)) {
    if (file.filename() == "manifest.sha256") continue;  // without it there is no checkpoint: not complete
    const std::string bytes = read_file(file);
    write_file(file, bytes.substr(0, bytes.size() - 1));
    expect_refused(file);
    write_file(file, bytes + "x");
    expect_refused(file);
    fs::remove(file);
    expect_refused(file);
    write_file(file, bytes);
  }
}

// What to remove, and which older one the run could go on from; and both ways lead to the same bits.
TEST_F(DamagedCheckpoint, TheMessageSaysHowToGoOn) {
  const std::string weights = case_.summary("run").weights_sha256;
  for (const bool by_flag : {true, false}) {
    flip(latest_ + "/model.safetensors", 200);
    const Ended refused = case_.train("run", settings_);
    EXPECT_EQ(refused.code, 2);
    EXPECT_NE(
        refused.err.find("\nto go on from checkpoint-3, remove " + latest_ + ", or say --from checkpoint-3"),
        std::string::npos)
        << refused.err;
    if (!by_flag) fs::remove_all(latest_);
    const std::vector<std::string> flags =
        by_flag ? std::vector<std::string>{"--from", "checkpoint-3"} : std::vector<std::string>();
    EXPECT_EQ(case_.trained("run", settings_, flags).weights_sha256, weights);
    EXPECT_TRUE(fs::exists(latest_));
  }
}

TEST_F(DamagedCheckpoint, AnotherCheckpointIsTakenByNamePathOrNumber) {
  const std::string weights = case_.summary("run").weights_sha256;
  for (const std::string& from : {std::string("3"), case_.output("run") + "/checkpoint-3"}) {
    const Ended ended = case_.train("run", settings_, {"--from", from});
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_NE(ended.err.find("resuming after step 3 from "), std::string::npos) << ended.err;
    EXPECT_EQ(case_.summary("run").weights_sha256, weights);
  }
  const Ended absent = case_.train("run", settings_, {"--from", "checkpoint-1"});
  EXPECT_EQ(absent.code, 2);
  EXPECT_NE(absent.err.find("checkpoint-3, checkpoint-4"), std::string::npos) << absent.err;
  EXPECT_EQ(case_.train("run", settings_, {"--from", "checkpoint-3", "--fresh"}).code, 2);
}

// In one process, since every byte takes its turn.
class DamagedCheckpointLong : public DamagedCheckpoint {};

TEST_F(DamagedCheckpointLong, EveryByteOfEveryFileMatters) {
  for (const fs::path& file : files_of(latest_)) {
    for (int64_t offset = 0; offset < static_cast<int64_t>(fs::file_size(file)); ++offset) {
      flip(file, offset);
      try {
        const CheckpointReader reader(latest_);
        ADD_FAILURE() << file << " at " << offset << " was not noticed";
      } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what()).find(file.filename()), std::string::npos) << error.what();
      }
      flip(file, offset);
    }
  }
}

}  // namespace
}  // namespace lockstep
