#include "train/checkpoint/background_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "train/checkpoint/checkpoint_case.h"

namespace lockstep {
namespace {

TEST(BackgroundCheckpointWriter, TheTensorsAreFreeToChangeWhenTheyHaveBeenRead) {
  const RunFolder run;
  {
    BackgroundCheckpointWriter writer(run.path(), 0);
    ToyState state(0, 50'000);
    for (int64_t step = 1; step <= 8; ++step) {
      state.set(step);
      writer.save(state.content(), nullptr);
      ASSERT_TRUE(writer.read_within(std::chrono::hours(1)));
      state.set(-1);
    }
  }
  EXPECT_EQ(run.steps(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  for (const CheckpointInfo& checkpoint : list_checkpoints(run.path())) expect_holds(checkpoint, 50'000);
}

// What it would cost to keep them: a run whose state fills most of the memory could never save it.
TEST(BackgroundCheckpointWriter, KeepsNoCopyOfTheTensors) {
  const RunFolder run;
  BackgroundCheckpointWriter writer(run.path(), 0);
  std::promise<void> go;
  const std::shared_future<void> may_read = go.get_future().share();
  std::atomic<int> asked = 0;
  CheckpointContent content;
  content.step = 1;
  content.tensors = {{kModelFile, {{"t", DType::kU8, {2}}}, [&](const TensorSpec&, const ByteSink& sink) {
                        may_read.wait();
                        ++asked;
                        sink(std::as_bytes(std::span("ab", 2)));
                      }}};
  const auto held = std::make_shared<int>();
  writer.save(content, held);
  EXPECT_EQ(asked, 0) << "save() itself has read the tensors";
  EXPECT_FALSE(writer.read_within(std::chrono::milliseconds(0)));
  EXPECT_EQ(held.use_count(), 2);
  go.set_value();
  writer.finish();
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(writer.read_within(std::chrono::milliseconds(0)));
  EXPECT_EQ(held.use_count(), 1);
}

TEST(BackgroundCheckpointWriter, StreamsPiecesAndRefusesTooManyOrTooFew) {
  const RunFolder run;
  BackgroundCheckpointWriter writer(run.path(), 0);
  const std::string text = "abcdefgh";
  const auto save = [&](int pieces) {
    CheckpointContent content;
    content.step = 1;
    content.tensors = {
        {kModelFile, {{"t", DType::kU8, {8}}}, [&text, pieces](const TensorSpec&, const ByteSink& sink) {
           for (int i = 0; i < pieces; ++i) sink(std::as_bytes(std::span(text)).subspan(2 * i % 8, 2));
         }}};
    const auto held = std::make_shared<int>();
    writer.save(std::move(content), held);
    EXPECT_TRUE(writer.read_within(std::chrono::hours(1)));
    writer.finish();
  };
  EXPECT_THROW(save(3), InternalError);
  EXPECT_THROW(save(5), InternalError);
  save(4);
  EXPECT_EQ(&writer.idle_writer(), &writer.idle_writer());
  const CheckpointReader checkpoint(writer.last()->path);
  EXPECT_EQ(read_tensor<char>(checkpoint, kModelFile, {"t", DType::kU8, {8}}),
            std::vector<char>(text.begin(), text.end()));
}

}  // namespace
}  // namespace lockstep
