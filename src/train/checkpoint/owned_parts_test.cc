// Files that several write: what one would have written, and nothing else is taken for it.
#include "train/checkpoint/owned_parts.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "model/tabular.h"
#include "train/checkpoint/checkpoint_case.h"
#include "train/checkpoint/training_checkpoints.h"

namespace lockstep {
namespace {

class OwnedPartsOf : public ::testing::Test {
 protected:
  static constexpr int kWorkers = 3;

  TrainingCheckpoints checkpoints() { return {run_.path(), 0, Identity(), {}}; }
  // What is written of a step by all workers, one after the other.
  std::vector<PartSums> write(const std::string& folder, bool weights_alone) {
    std::vector<PartSums> sums;
    std::vector<std::byte> staging(100);
    const TrainState& state = train_.state_as_it_lies();
    for (int rank = 0; rank < kWorkers; ++rank)
      sums.push_back(write_parts(
          folder, state_files(state, {}, weights_alone),
          {.state = state, .backend = *backend_, .rank = rank, .workers = kWorkers, .staging = staging},
          stop_));
    return sums;
  }
  std::string text(int64_t step, const char* file) const {
    return read_file(checkpoint_path(run_.path(), step) + "/" + file);
  }

  RunFolder run_;
  std::unique_ptr<Backend> backend_ = make_cpu_backend(1);
  Model model_ = build_tabular({2, 11, 4, 3, {500}, {6}, 800});
  TrainStep train_{model_, *backend_, TrainOptions{}};
  std::atomic<bool> stop_ = false;
};

TEST_F(OwnedPartsOf, AWholeStateAreTheBytesOfOneWriter) {
  TrainingCheckpoints all = checkpoints();
  for (const bool weights_alone : {false, true}) {
    const int64_t alone = weights_alone ? 10 : 20, together = alone + 1;
    all.write_together(1, {});
    all.save(train_, alone, nlohmann::json::object(), false, weights_alone);
    all.finish();
    all.write_together(kWorkers, [this](const std::string& folder, bool weights, std::span<std::byte>) {
      return write(folder, weights);
    });
    all.save(train_, together, nlohmann::json::object(), false, weights_alone);
    all.finish();
    const CheckpointManifest expected = read_manifest(checkpoint_path(run_.path(), alone));
    const CheckpointManifest found = read_manifest(checkpoint_path(run_.path(), together));
    EXPECT_EQ(expected.files.size(), weights_alone ? 2U : 3U);
    // All but state.json, which has the step.
    for (size_t i = 0; i + 1 < expected.files.size(); ++i) {
      const std::string name = expected.files[i].name;
      EXPECT_EQ(manifest_text(0, {found.files[i]}), manifest_text(0, {expected.files[i]}));
      EXPECT_EQ(text(together, name.c_str()), text(alone, name.c_str())) << name;
    }
    EXPECT_NO_THROW(CheckpointReader(checkpoint_path(run_.path(), together)));
  }
}

TEST_F(OwnedPartsOf, AFileThatHoldsSomethingElseAreRefused) {
  TrainingCheckpoints all = checkpoints();
  all.write_together(kWorkers, [this](const std::string& folder, bool weights, std::span<std::byte>) {
    std::vector<PartSums> sums = write(folder, weights);
    const auto files = state_files(train_.state_as_it_lies(), {}, weights);
    // The last element of the optimizer's last tensor, which the last worker wrote.
    std::fstream file(folder + "/" + files[1].name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(files[1].header.file_bytes() - 4);
    file.write("lost", 4);
    return sums;
  });
  all.save(train_, 1, nlohmann::json::object(), false);
  const std::string said = user_error([&] { all.finish(); });
  EXPECT_EQ(said.find("checkpoint 1 was not saved: "), 0U) << said;
  EXPECT_NE(said.find("optimizer.safetensors does not hold what worker "), std::string::npos) << said;
  EXPECT_EQ(run_.names(), std::vector<std::string>{});
}

TEST_F(OwnedPartsOf, AWorkerThatIsStoppedAreNotWritten) {
  stop_ = true;
  TrainingCheckpoints all = checkpoints();
  all.write_together(kWorkers, [this](const std::string& folder, bool weights, std::span<std::byte>) {
    // Tensors of less than a block are the last one's.
    EXPECT_TRUE(write(folder, weights).back().empty());
    throw UserError("worker 1 cannot write");
    return std::vector<PartSums>();
  });
  all.save(train_, 1, nlohmann::json::object(), false);
  EXPECT_EQ(user_error([&] { all.finish(); }),
            "checkpoint 1 was not saved: worker 1 cannot write (there is none before it)");
  EXPECT_EQ(run_.names(), std::vector<std::string>{});
}

}  // namespace
}  // namespace lockstep
