#include "train/pipeline/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"

namespace lockstep {
namespace {

std::string text_of(const std::vector<PipelineAction>& actions) {
  std::string text;
  for (const PipelineAction& action : actions)
    text += (text.empty() ? "" : " ") + std::string(1, "FBIW"[static_cast<size_t>(action.kind)]) +
            std::to_string(action.microbatch);
  return text;
}

std::string lines(PipelineSchedule schedule, int ranks, int64_t microbatches, int chunks = 1) {
  const PipelineShape shape{schedule, ranks, chunks, microbatches};
  return timeline(shape, slots_of_stages(shape));
}

TEST(PipelineSchedule, RanksDoWhatTheTablesOfTheirPapersSay) {
  const auto rank = [](PipelineSchedule schedule, int of) {
    return text_of(pipeline_actions({schedule, 4, 1, 6}, of));
  };
  EXPECT_EQ(rank(PipelineSchedule::kZeroBubble, 2), "F0 F1 I0 F2 I1 F3 I2 W0 F4 I3 W1 F5 I4 W2 I5 W3 W4 W5");
  EXPECT_EQ(rank(PipelineSchedule::k1F1B, 2), "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5");
  EXPECT_EQ(rank(PipelineSchedule::kGpipe, 2), "F0 F1 F2 F3 F4 F5 B0 B1 B2 B3 B4 B5");
}

TEST(PipelineSchedule, TheTimelineShowsWhoIsIdle) {
  EXPECT_EQ(lines(PipelineSchedule::kGpipe, 3, 4),
            "FFFF......BbBbBbBb\n"
            ".FFFF...BbBbBbBb\n"
            "..FFFFBbBbBbBb\n");
  EXPECT_EQ(lines(PipelineSchedule::k1F1B, 3, 4),
            "FFF....BbFBb.Bb.Bb\n"
            ".FF..BbFBbFBb.Bb\n"
            "..FBbFBbFBbFBb\n");
}

// Idle time of the first rank, which begins first and ends last: (p-1)(F+B) of 1F1B, less when interleaved,
// and (p-1)F where gradients of weights fill the gaps.
TEST(PipelineSchedule, IdleTimeIsThatOfTheFormulas) {
  const auto idle = [](PipelineSchedule schedule, int chunks) {
    const std::string text = lines(schedule, 4, 16, chunks);
    const std::string first = text.substr(0, text.find('\n'));
    size_t longest = 0, begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      longest = std::max(longest, end - begin);
      begin = end + 1;
    }
    return static_cast<int64_t>(longest) - 16 * 3 * chunks;
  };
  EXPECT_EQ(idle(PipelineSchedule::kGpipe, 1), 3 * 3);
  EXPECT_EQ(idle(PipelineSchedule::k1F1B, 1), 3 * 3);
  EXPECT_EQ(idle(PipelineSchedule::kInterleaved, 2), 3 * 3);  // of stages half as long
  EXPECT_EQ(idle(PipelineSchedule::kZeroBubble, 1), 3);
}

TEST(PipelineSchedule, EveryTableEndsInOrderAndWithoutWaitingForEver) {
  for (const PipelineSchedule schedule : {PipelineSchedule::kGpipe, PipelineSchedule::k1F1B,
                                          PipelineSchedule::kInterleaved, PipelineSchedule::kZeroBubble})
    for (int ranks = 2; ranks <= 5; ++ranks)
      for (int64_t microbatches = 1; microbatches <= 16; ++microbatches)
        for (int chunks = 1; chunks <= (schedule == PipelineSchedule::kInterleaved ? 3 : 1); ++chunks) {
          const PipelineShape shape{schedule, ranks, chunks, microbatches};
          SCOPED_TRACE(std::string(name_of(schedule)) + " " + std::to_string(ranks) + " ranks, " +
                       std::to_string(microbatches) + " microbatches, " + std::to_string(chunks));
          EXPECT_NO_THROW(timeline(shape, slots_of_stages(shape)));
          for (int rank = 0; rank < ranks; ++rank) {
            std::map<std::pair<ActionKind, int>, int64_t> next;
            for (const PipelineAction& action : pipeline_actions(shape, rank)) {
              EXPECT_EQ(shape.rank_of(action.stage), rank);
              const int64_t expected = next[{action.kind, action.stage}]++;
              EXPECT_EQ(action.microbatch, expected);
            }
            for (const auto& [what, count] : next) EXPECT_EQ(count, microbatches);
          }
        }
}

TEST(PipelineSchedule, OneForwardOneBackwardHoldsAsManyAsStagesFollow) {
  const PipelineShape shape{PipelineSchedule::k1F1B, 4, 1, 16};
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(most_in_flight(pipeline_actions(shape, rank), rank), 4 - rank);
}

TEST(PipelineSchedule, TooFewSlotsStandStill) {
  const PipelineShape shape{PipelineSchedule::k1F1B, 4, 1, 8};
  EXPECT_THROW(timeline(shape, {1, 1, 1, 1}), InternalError);
}

}  // namespace
}  // namespace lockstep
