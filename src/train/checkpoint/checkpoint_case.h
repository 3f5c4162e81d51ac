// Set-up of the checkpoint tests: a run's folder of its own, and content that is a function of the step.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "train/checkpoint/background_writer.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/checkpoint/checkpoint_writer.h"

namespace lockstep {

class RunFolder {
 public:
  RunFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lockstep-run-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~RunFolder() { std::filesystem::remove_all(path_); }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> steps;
    for (const CheckpointInfo& checkpoint : list_checkpoints(path_)) steps.push_back(checkpoint.step);
    return steps;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }

 private:
  std::string path_;
};

// A state in which every number says which step it belongs to.
struct ToyState {
  explicit ToyState(int64_t step, int64_t elements = 1000) : step(step), weights(elements), moment(elements) {
    set(step);
  }
  void set(int64_t new_step) {
    step = new_step;
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] = static_cast<float>(step * 7 + static_cast<int64_t>(i));
    for (size_t i = 0; i < moment.size(); ++i)
      moment[i] = static_cast<uint16_t>(step + static_cast<int64_t>(i));
    last_steps = {step, -step};
  }

  CheckpointContent content() const {
    const Shape all{static_cast<int64_t>(weights.size())};
    CheckpointContent content;
    content.step = step;
    content.identity.add("train.seed", 7);
    content.state = {{"position", step * 32}, {"skipped", nlohmann::json::array({1, 2})}};
    content.tensors = {
        tensor_file(kModelFile, {{"w", DType::kF32, all, std::as_bytes(std::span(weights))}}),
        tensor_file(kOptimizerFile, {{"moment1.w", DType::kBF16, all, std::as_bytes(std::span(moment))},
                                     {"last_step", DType::kI64, {2}, std::as_bytes(std::span(last_steps))},
                                     {"none", DType::kF32, {0, 3}, {}}})};
    content.texts = {{"config.json", "{}\n"}};
    return content;
  }

  int64_t step;
  std::vector<float> weights;
  std::vector<uint16_t> moment;
  std::vector<int64_t> last_steps;
};

// Saves a state of its own, which lives until it has been read.
inline void save_toy(BackgroundCheckpointWriter& writer, int64_t step, int64_t elements = 1000) {
  auto state = std::make_shared<ToyState>(step, elements);
  CheckpointContent content = state->content();
  writer.save(std::move(content), std::move(state));
}

template <typename T>
std::vector<T> read_tensor(const CheckpointReader& checkpoint, const char* file, const TensorSpec& tensor) {
  std::vector<T> values(static_cast<size_t>(tensor.shape.numel()));
  checkpoint.tensors(file).read(tensor, std::as_writable_bytes(std::span(values)));
  return values;
}

// The checkpoint holds exactly the state of its step.
inline void expect_holds(const CheckpointInfo& info, int64_t elements = 1000) {
  const CheckpointReader checkpoint(info.path);
  const ToyState expected(info.step, elements);
  EXPECT_EQ(checkpoint.step(), info.step);
  EXPECT_EQ(checkpoint.identity().sha256(), expected.content().identity.sha256());
  EXPECT_EQ(checkpoint.state(), expected.content().state);
  EXPECT_EQ(read_tensor<float>(checkpoint, kModelFile, {"w", DType::kF32, {elements}}), expected.weights);
  EXPECT_EQ(read_tensor<uint16_t>(checkpoint, kOptimizerFile, {"moment1.w", DType::kBF16, {elements}}),
            expected.moment);
  EXPECT_EQ(read_tensor<int64_t>(checkpoint, kOptimizerFile, {"last_step", DType::kI64, {2}}),
            expected.last_steps);
  EXPECT_TRUE(checkpoint.tensors(kOptimizerFile).contains("none"));
}

// What the UserError says that `action` throws.
template <typename Action>
std::string user_error(const Action& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace lockstep
