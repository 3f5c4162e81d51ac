#include "train/checkpoint/background_writer.h"

#include <gtest/gtest.h>

#include "train/checkpoint/checkpoint_case.h"

namespace lockstep {
namespace {

TEST(BackgroundCheckpointWriter, TakesTheTensorsAsTheyWereWhenSaved) {
  const RunFolder run;
  {
    BackgroundCheckpointWriter writer(run.path(), 0);
    ToyState state(0, 50'000);
    for (int64_t step = 1; step <= 8; ++step) {
      state.set(step);
      writer.save(state.content());
      state.set(-1);
    }
  }
  EXPECT_EQ(run.steps(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  for (const CheckpointInfo& checkpoint : list_checkpoints(run.path())) expect_holds(checkpoint, 50'000);
}

TEST(BackgroundCheckpointWriter, TheSnapshotFollowsTheSizeOfTheTensors) {
  const RunFolder run;
  BackgroundCheckpointWriter writer(run.path(), 0);
  for (const int64_t elements : {10, 1000, 3}) {
    writer.save(ToyState(elements, elements).content());
    writer.finish();
    expect_holds(writer.last().value(), elements);
  }
}

TEST(BackgroundCheckpointWriter, StreamsPiecesAndRefusesTooManyOrTooFew) {
  const RunFolder run;
  BackgroundCheckpointWriter writer(run.path(), 0);
  const std::string text = "abcdefgh";
  int pieces = 0;
  CheckpointContent content;
  content.step = 1;
  content.tensors = {{kModelFile, {{"t", DType::kU8, {8}}}, [&](const TensorSpec&, const ByteSink& sink) {
                        for (int i = 0; i < pieces; ++i)
                          sink(std::as_bytes(std::span(text)).subspan(2 * i % 8, 2));
                      }}};
  pieces = 3;
  EXPECT_THROW(writer.save(content), InternalError);
  pieces = 5;
  EXPECT_THROW(writer.save(content), InternalError);
  pieces = 4;
  writer.save(content);
  EXPECT_EQ(&writer.idle_writer(), &writer.idle_writer());
  const CheckpointReader checkpoint(writer.last()->path);
  EXPECT_EQ(read_tensor<char>(checkpoint, kModelFile, {"t", DType::kU8, {8}}),
            std::vector<char>(text.begin(), text.end()));
}

}  // namespace
}  // namespace lockstep
