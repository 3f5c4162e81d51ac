#include "observe/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>

namespace lockstep {
namespace {

StepRecord step(int64_t number) {
  StepRecord record;
  record.step = number;
  record.loss = 0.43125;
  record.lr = 8e-4;
  record.grad_norm = 1.3;
  record.samples = 1024;
  record.seconds = 0.1;
  record.shares.compute = 0.083;
  record.shares.input_wait = 0.004;
  record.shares.optimizer = 0.013;
  return record;
}

ProgressState state() {
  ProgressState state;
  state.last = step(120);
  state.total_steps = 2000;
  state.seconds_left = 65;
  state.recent.add(state.last);
  return state;
}

// Through a launcher: lines that begin with a carriage return are the live line, all others stay.
TEST(Progress, TellsTheLauncherWhichLineIsLive) {
  std::ostringstream out;
  double now = 0;
  ProgressOptions options;
  options.total_steps = 2000;
  options.terminal = options.relayed = true;
  options.width = [] { return 30; };
  options.clock = [&] { return now; };
  Progress progress(out, options);
  progress.step(step(1));
  now += 0.01;
  progress.step(step(2));  // too soon to be shown again
  progress.message("a note");
  now += 0.2;
  progress.step(step(3));
  progress.finish();
  EXPECT_EQ(out.str(),
            "\rstep 1/2000  loss 0.4313\na note\n\rstep 3/2000  loss 0.4313\n\r\nstep 3/2000  loss 0.4313\n");
}

TEST(Progress, LooksForALauncherThatWantsALiveLine) {
  setenv("LOCKSTEP_LIVE_COLUMNS", "73", 1);
  const ProgressOptions relayed = progress_options_for(-1, 10);
  unsetenv("LOCKSTEP_LIVE_COLUMNS");
  EXPECT_TRUE(relayed.terminal && relayed.relayed);
  EXPECT_EQ(relayed.width(), 73);
  EXPECT_FALSE(progress_options_for(-1, 10).terminal);
}

TEST(ProgressText, HasEverythingWhereThereIsRoom) {
  EXPECT_EQ(progress_text(state(), 200),
            "step 120/2000  loss 0.4313  lr 8e-4  norm 1.3  10.2k samples/s  eta 1:05  "
            "compute 83% input 4% optimizer 13%");
}

TEST(ProgressText, LeavesOutWhatMattersLeast) {
  EXPECT_EQ(progress_text(state(), 80),
            "step 120/2000  loss 0.4313  lr 8e-4  norm 1.3  10.2k samples/s  eta 1:05");
  EXPECT_EQ(progress_text(state(), 40), "step 120/2000  loss 0.4313  eta 1:05");
  EXPECT_EQ(progress_text(state(), 15), "step 120/2000");
  for (int width = 0; width < 130; ++width)
    EXPECT_LE(progress_text(state(), width).size(), static_cast<size_t>(width));
}

TEST(ProgressText, CountsTokensWhereThereAreSome) {
  ProgressState with_tokens = state();
  with_tokens.last.tokens = 262'144;
  with_tokens.recent = {};
  with_tokens.recent.add(with_tokens.last);
  EXPECT_NE(progress_text(with_tokens, 200).find("  2.62M tokens/s  "), std::string::npos);
}

TEST(ProgressText, SaysWhenALossIsNotANumber) {
  ProgressState bad = state();
  bad.last.loss = std::numeric_limits<double>::quiet_NaN();
  bad.total_steps = 0;
  EXPECT_TRUE(progress_text(bad, 200).starts_with("step 120  loss nan  "));
}

TEST(ProgressText, Evaluation) {
  EvalRecord record;
  record.step = 500;
  record.loss = 0.03125;
  record.auc = 0.943;
  EXPECT_EQ(evaluation_text(record), "eval at 500: loss 0.03125  auc 0.943");
  record.best = true;
  EXPECT_EQ(evaluation_text(record), "eval at 500: loss 0.03125  auc 0.943  (best so far)");
  record.auc = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(evaluation_text(record), "eval at 500: loss 0.03125  auc undefined  (best so far)");
}

TEST(ProgressText, Durations) {
  EXPECT_EQ(duration_text(0.4), "0:00");
  EXPECT_EQ(duration_text(59.6), "1:00");
  EXPECT_EQ(duration_text(3 * 3600 + 4 * 60 + 5), "3:04:05");
  EXPECT_EQ(duration_text(86'400 * 2 + 3 * 3600 + 240), "2d 03:04");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::infinity()), "?");
}

TEST(ProgressText, Rates) {
  EXPECT_EQ(rate_text(0), "0");
  EXPECT_EQ(rate_text(3.14159), "3.14");
  EXPECT_EQ(rate_text(999.6), "1k");
  EXPECT_EQ(rate_text(1.234e10), "12.3G");
}

struct Clock {
  double seconds = 100;
};

ProgressOptions options(Clock& clock, bool terminal) {
  ProgressOptions options;
  options.total_steps = 10;
  options.terminal = terminal;
  options.clock = [&clock] { return clock.seconds; };
  return options;
}

TEST(Progress, PlainLinesComeAtABoundedRateWithoutControlCharacters) {
  Clock clock;
  std::ostringstream out;
  {
    Progress progress(out, options(clock, false));
    for (int64_t i = 1; i <= 9; ++i) {
      progress.step(step(i));
      clock.seconds += 3;
    }
    StepRecord skipped = step(10);
    skipped.action = kSkipped;
    skipped.note = "loss\x1b[31m is\nnan";
    progress.step(skipped);
    EvalRecord eval;
    eval.step = 10;
    progress.evaluation(eval);
  }
  const std::string rest = "  loss 0.4313  lr 8e-4  norm 1.3  10.2k samples/s";
  const std::string shares = "  compute 83% input 4% optimizer 13%\n";
  EXPECT_EQ(out.str(), "step 1/10" + rest + shares +                      //
                           "step 5/10" + rest + "  eta 0:15" + shares +   //
                           "step 9/10" + rest + "  eta 0:03" + shares +   //
                           "step 10 skipped: loss?[31m is nan\n" +        //
                           "step 10/10" + rest + "  eta 0:00" + shares +  //
                           "eval at 10: loss 0\n");
}

TEST(Progress, ATerminalHasOneLineThatIsRewritten) {
  Clock clock;
  std::ostringstream out;
  ProgressOptions narrow = options(clock, true);
  narrow.width = [] { return 28; };
  {
    Progress progress(out, narrow);
    progress.step(step(1));
    progress.step(step(2));  // too soon to show
    clock.seconds += 1;
    progress.step(step(3));
    progress.message("checkpoint written");
    progress.step(step(4));
  }
  EXPECT_EQ(out.str(),
            "\rstep 1/10  loss 0.4313\x1b[K"
            "\rstep 3/10  loss 0.4313\x1b[K"
            "\r\x1b[Kcheckpoint written\n"
            "\rstep 3/10  loss 0.4313\x1b[K"
            "\rstep 4/10  loss 0.4313\x1b[K\n");
}

TEST(Progress, WithoutStepsNothingIsShown) {
  std::ostringstream out;
  Clock clock;
  { const Progress progress(out, options(clock, true)); }
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace lockstep
