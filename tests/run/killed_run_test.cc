// Runs that are killed with SIGKILL, over and over, also while a checkpoint is being written: what they reach
// in the end is what the undisturbed run reaches, to the last bit.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "base/error.h"
#include "run/folder_events.h"
#include "run/train_case.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace lockstep {
namespace {

class KilledRun {
 public:
  KilledRun(const std::string& job, uint32_t seed, std::vector<std::string> settings = {})
      : case_(job), random_(seed), settings_(std::move(settings)) {
    case_.trained("whole", settings_);
    std::filesystem::create_directories(case_.output("cut"));
  }

  // Starts and kills until `kills` have hit a run; one that gets to its end is compared, and begins anew.
  void survive(int kills) {
    int hit = 0;
    for (int start = 0; hit < kills && start < 10 * kills; ++start) {
      const Ended ended = start_and_kill(hit % 2 == 1);
      if (::testing::Test::HasFatalFailure()) return;
      if (ended.signal == SIGKILL) {
        ++hit;
        continue;
      }
      ASSERT_EQ(ended.code, 0) << ended.err;
      expect_as_if_undisturbed();
      std::filesystem::remove_all(case_.output("cut"));
      std::filesystem::create_directories(case_.output("cut"));
    }
    EXPECT_EQ(hit, kills);
    EXPECT_GT(within_write_, 0) << "no kill fell into the writing of a checkpoint";
    case_.trained("cut", settings_);
    expect_as_if_undisturbed();
  }

 private:
  Ended start_and_kill(bool in_write) {
    const auto from = latest_checkpoint(case_.output("cut"));
    FolderEvents events(case_.output("cut"));
    LockstepProcess process(case_.arguments("cut", settings_), case_.log("cut"));
    const auto is_moment = [&](const FolderEvent& event) {
      if (!in_write) return true;
      return event.created && event.name.starts_with("checkpoint-");
    };
    auto wait = 1 + random_() % (in_write ? 4 : 20);
    while (const auto event = events.next(process)) {
      wait -= is_moment(*event) ? 1 : 0;
      if (wait > 0) continue;
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 4000));
      process.send(SIGKILL);
      break;
    }
    Ended ended = process.wait();
    // What was left half-written is not what it goes on from. It may be killed before it can say so.
    const size_t resumed = ended.err.find("resuming after step ");
    if (resumed != std::string::npos) {
      EXPECT_TRUE(from &&
                  ended.err.substr(resumed).starts_with(fmt::format("resuming after step {} ", from->step)))
          << ended.err;
    }
    for (const std::string& name : case_.names("cut"))
      within_write_ += name.find(".tmp-") != std::string::npos ? 1 : 0;
    return ended;
  }

  void expect_as_if_undisturbed() {
    EXPECT_EQ(case_.summary("cut").weights_sha256, case_.summary("whole").weights_sha256);
    EXPECT_EQ(case_.summary("cut").skipped_steps, case_.summary("whole").skipped_steps);
    expect_same_steps(case_.metrics("cut"), case_.metrics("whole"));
    expect_same_evaluations(case_.metrics("cut"), case_.metrics("whole"));
    // The same checkpoints with the same one marked as best, and nothing half-written.
    EXPECT_EQ(case_.names("cut"), case_.names("whole"));
    const auto best = best_checkpoint(case_.output("cut")), expected = best_checkpoint(case_.output("whole"));
    ASSERT_EQ(best.has_value(), expected.has_value());
    if (best) {
      EXPECT_EQ(best->step, expected->step);
    }
  }

  TrainCase case_;
  std::mt19937 random_;
  std::vector<std::string> settings_;
  int within_write_ = 0;
};

TEST(KilledRun, GptWithDropoutReachesTheSameBits) { KilledRun(kGptJob, 1).survive(8); }
TEST(KilledRun, TabularWithAverageReachesTheSameBits) { KilledRun(kTabularJob, 2).survive(8); }
TEST(KilledRun, ResnetWithStatisticsReachesTheSameBits) { KilledRun(kResnetJob, 3).survive(4); }

// The random bits of the rounding are counted, not drawn: a resumed run rounds as it would have.
TEST(KilledRun, StochasticRoundingReachesTheSameBits) {
  KilledRun(kEncoderJob, 9, {"train.stochastic_rounding=true", "checkpoint.every=2", "model.dropout=0.1"})
      .survive(4);
}

TEST(KilledRun, PureBf16ReachesTheSameBits) {
  KilledRun(kLlamaJob, 8, {"train.precision=bf16_pure", "train.moments=bf16"}).survive(4);
}

// Decisions of the guard are part of the step: skipped and rewound steps come out the same.
TEST(KilledRun, SkippedStepsAreSkippedAgain) {
  KilledRun(kGptJob, 6,
            {"train.guard.non_finite=skip", "train.guard.max_skips=100", "train.guard.spike_factor=1.02",
             "train.guard.spike_window=4"})
      .survive(8);
}
TEST(KilledRun, RewindsAreMadeAgain) {
  KilledRun(kGptJob, 8,
            {"train.guard.non_finite=rewind", "train.guard.max_skips=100", "train.guard.spike_factor=1.5",
             "train.guard.lr_cut=0.3", "train.lr.base=1", "train.lr.decay=constant",
             "train.guard.spike_window=4", "train.lr.warmup=0", "checkpoint.every=5"})
      .survive(8);
}
TEST(KilledRunLong, GptWithDropoutReachesTheSameBits) { KilledRun(kGptJob, 4).survive(60); }
TEST(KilledRunLong, TabularWithAverageReachesTheSameBits) { KilledRun(kTabularJob, 5).survive(60); }

TEST(KilledRunLong, ResnetWithStatisticsReachesTheSameBits) { KilledRun(kResnetJob, 7).survive(20); }

}  // namespace
}  // namespace lockstep
