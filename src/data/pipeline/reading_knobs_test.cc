// The knobs of reading: what a wait raises, how far, and when they come down again.
#include "data/pipeline/reading_knobs.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

constexpr KnobLimits kLimits{.readers = 4, .waiting_readers = 16, .ahead = 20, .fetch = 3 << 20};

int calm_until_lowered(ReadingKnobs& knobs) {
  const int readers = knobs.readers();
  for (int batches = 1; batches < 100000; ++batches) {
    knobs.did_not_wait(0.9);
    if (knobs.readers() < readers) return batches;
  }
  return 0;
}

TEST(ReadingKnobs, BeginSmall) {
  const ReadingKnobs knobs(kLimits);
  EXPECT_EQ(knobs.readers(), 1);
  EXPECT_EQ(knobs.ahead(), 4);
  EXPECT_EQ(knobs.fetch(), 0);
  EXPECT_EQ(ReadingKnobs({.readers = 4, .waiting_readers = 0, .ahead = 1}).readers(), 0);
  EXPECT_EQ(ReadingKnobs({.readers = 4, .waiting_readers = 8, .ahead = 1}).ahead(), 1);
}

TEST(ReadingKnobs, AWaitRaisesWhatItWasFor) {
  ReadingKnobs knobs(kLimits);
  knobs.waited({});  // readers had nothing to do: what they make is uneven
  EXPECT_EQ(knobs.readers(), 1);
  EXPECT_EQ(knobs.ahead(), 8);
  knobs.waited({.busy = true});
  EXPECT_EQ(knobs.readers(), 2);
  EXPECT_EQ(knobs.ahead(), 8);  // which they did not reach
  EXPECT_EQ(knobs.fetch(), 0);
  for (int i = 0; i < 10; ++i) knobs.waited({.busy = true, .full = true});
  EXPECT_EQ(knobs.readers(), 4);  // as many as keep processors busy
  EXPECT_EQ(knobs.ahead(), 20);
  knobs.waited({.busy = true, .files = true});
  EXPECT_EQ(knobs.readers(), 8);  // those that wait for files may be more
  EXPECT_EQ(knobs.fetch(), 1 << 20);
  for (int i = 0; i < 10; ++i) knobs.waited({.busy = true, .files = true});
  EXPECT_EQ(knobs.readers(), 16);
  EXPECT_EQ(knobs.fetch(), 3 << 20);
}

TEST(ReadingKnobs, ComeDownWhenReadersAreIdleAndTryLessOftenWhereThatWasTooMuch) {
  ReadingKnobs knobs(kLimits);
  for (int i = 0; i < 10; ++i) knobs.waited({.busy = true, .full = true});
  for (int i = 0; i < 5000; ++i) knobs.did_not_wait(0.1);  // never a wait, but readers are needed
  EXPECT_EQ(knobs.readers(), 4);
  const int first = calm_until_lowered(knobs);
  EXPECT_GT(first, 0);
  EXPECT_EQ(knobs.readers(), 2);
  EXPECT_EQ(knobs.ahead(), 15);
  knobs.waited({.busy = true, .full = true});
  EXPECT_EQ(knobs.readers(), 4);
  EXPECT_GT(calm_until_lowered(knobs), first);
  for (int i = 0; i < 100000; ++i) knobs.did_not_wait(1);
  EXPECT_EQ(knobs.readers(), 1);
  EXPECT_EQ(knobs.ahead(), 4);
}

TEST(ReadingKnobs, ReadersThatNeverRestGetHelpBeforeAnybodyWaits) {
  ReadingKnobs knobs(kLimits);
  knobs.had_no_rest();
  EXPECT_EQ(knobs.readers(), 2);
  EXPECT_EQ(knobs.ahead(), 4);
  for (int i = 0; i < 10; ++i) knobs.had_no_rest();
  EXPECT_EQ(knobs.readers(), 4);  // as many as keep processors busy
  for (int i = 0; i < 10; ++i) knobs.waited({.busy = true, .files = true});
  EXPECT_EQ(knobs.readers(), 16);
  knobs.had_no_rest();
  EXPECT_EQ(knobs.readers(), 16);
  ReadingKnobs none({.readers = 4, .waiting_readers = 0, .ahead = 1});
  none.had_no_rest();
  EXPECT_EQ(none.readers(), 0);
}

TEST(ReadingKnobs, ReadersOfWhichHalfWouldNeverRestStay) {
  ReadingKnobs knobs(kLimits);
  for (int i = 0; i < 10; ++i) knobs.waited({.busy = true, .full = true});
  for (int i = 0; i < 100000; ++i) knobs.did_not_wait(0.55);
  EXPECT_EQ(knobs.readers(), 4);
  EXPECT_EQ(knobs.ahead(), 4);
  const int first = calm_until_lowered(knobs);
  knobs.had_no_rest();  // that was too much
  EXPECT_EQ(knobs.readers(), 4);
  EXPECT_GT(calm_until_lowered(knobs), first);
}

}  // namespace
}  // namespace lockstep
