#include "train/guard/guard.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace lockstep {
namespace {

using Action = Decision::Action;
using Policy = NonFinitePolicy;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

GuardSettings with_policy(Policy policy, int64_t max_skips = 3) {
  GuardSettings settings;
  settings.policy = policy;
  settings.max_skips = max_skips;
  return settings;
}

GuardSettings with_spikes(double factor, int64_t window) {
  GuardSettings settings = with_policy(Policy::kSkip, 100);
  settings.spike_factor = factor;
  settings.spike_window = window;
  return settings;
}

Decision good(Guard& guard, int64_t step, double loss = 2.0, double norm = 1.0) {
  return guard.decide({step, loss, norm, 32});
}

TEST(Guard, LetsGoodStepsPass) {
  Guard guard(with_policy(Policy::kStop));
  const Decision decision = good(guard, 1);
  EXPECT_EQ(decision.action, Action::kApply);
  EXPECT_EQ(decision.trouble, Trouble::kNone);
  EXPECT_TRUE(decision.text.empty());
}

TEST(Guard, StopPolicyStopsAtTheFirstBadValue) {
  Guard guard(with_policy(Policy::kStop));
  const Decision decision = guard.decide({7, kNan, kNan, 32});
  EXPECT_EQ(decision.action, Action::kStop);
  EXPECT_EQ(decision.trouble, Trouble::kNonFiniteLoss);
  EXPECT_EQ(decision.text, "the loss is nan; stopping");
}

TEST(Guard, TellsTheTroublesApart) {
  Guard guard(with_policy(Policy::kSkip, 10));
  EXPECT_EQ(guard.decide({1, -kInf, 1, 32}).trouble, Trouble::kNonFiniteLoss);
  EXPECT_EQ(guard.decide({2, 1, kInf, 32}).trouble, Trouble::kNonFiniteGradient);
  // The norm of a step without labels is 0/0; the labels are to blame.
  EXPECT_EQ(guard.decide({3, 0, kNan, 0}).trouble, Trouble::kNothingCounted);
  EXPECT_EQ(guard.skips(), 3);
}

TEST(Guard, SkipsUpToTheLimitThenStops) {
  Guard guard(with_policy(Policy::kSkip, 2));
  EXPECT_EQ(guard.decide({1, kNan, 1, 32}).action, Action::kSkip);
  EXPECT_EQ(good(guard, 2).action, Action::kApply);
  EXPECT_EQ(guard.decide({3, kNan, 1, 32}).text, "the loss is nan; skipping the step, 0 left");
  const Decision last = guard.decide({4, 1, kInf, 32});
  EXPECT_EQ(last.action, Action::kStop);
  EXPECT_EQ(last.text,
            "the gradient norm is inf at a loss of 1; stopping: 2 skips and 0 rewinds so far, "
            "train.guard.max_skips allows 2");
  EXPECT_EQ(guard.lr_factor(), 1.0);
}

TEST(Guard, LimitZeroStopsAtOnce) {
  Guard guard(with_policy(Policy::kRewind, 0));
  EXPECT_EQ(guard.decide({1, kNan, 1, 32}).action, Action::kStop);
}

TEST(Guard, RewindsCutTheLearningRateAndSurviveTheRestore) {
  Guard guard(with_policy(Policy::kRewind, 2));
  good(guard, 1, 2.0, 1.0);
  const nlohmann::json checkpoint = guard.state();
  good(guard, 2, 9.0, 8.0);
  const Decision first = guard.decide({3, kNan, kNan, 32});
  EXPECT_EQ(first.action, Action::kRewind);
  EXPECT_EQ(first.text,
            "the loss is nan; rewinding to the last checkpoint, from there the learning rate times "
            "0.5, 1 rewind left");
  guard.after_rewind(checkpoint);
  EXPECT_EQ(guard.rewinds(), 1);
  EXPECT_EQ(guard.lr_factor(), 0.5);
  EXPECT_EQ(guard.state().at("losses"), nlohmann::json::array({2.0}));  // step 2 has not happened

  good(guard, 2);
  EXPECT_EQ(guard.decide({3, kNan, kNan, 32}).action, Action::kRewind);
  guard.after_rewind(checkpoint);
  EXPECT_EQ(guard.lr_factor(), 0.25);
  EXPECT_EQ(guard.decide({3, kNan, kNan, 32}).action, Action::kStop);
}

// The checkpoint that a rewind goes back to knows nothing of the rewind. A run that is killed and resumed
// from it must come to the same place.
TEST(Guard, ResumingFromBeforeARewindRepeatsIt) {
  Guard undisturbed(with_policy(Policy::kRewind));
  good(undisturbed, 1);
  const nlohmann::json checkpoint = undisturbed.state();
  undisturbed.decide({2, kNan, kNan, 32});
  undisturbed.after_rewind(checkpoint);
  good(undisturbed, 2);

  Guard resumed(with_policy(Policy::kRewind));
  resumed.restore(nlohmann::json::parse(checkpoint.dump()));
  resumed.decide({2, kNan, kNan, 32});
  resumed.after_rewind(checkpoint);
  good(resumed, 2);
  EXPECT_EQ(resumed.state(), undisturbed.state());
}

TEST(Guard, StepsThatCountNothingAreSkippedUnderRewind) {
  Guard guard(with_policy(Policy::kRewind));
  EXPECT_EQ(guard.decide({1, 0, 0, 0}).action, Action::kSkip);
  EXPECT_EQ(guard.lr_factor(), 1.0);
}

TEST(Guard, FindsSpikesOnceHalfTheWindowIsFilled) {
  Guard guard(with_spikes(3.0, 8));
  for (int64_t step = 1; step <= 3; ++step) good(guard, step, 2.0, 1.0);
  EXPECT_EQ(good(guard, 4, 100.0, 1.0).action, Action::kApply);  // three values are too few
  EXPECT_EQ(good(guard, 5, 6.0, 3.0).action, Action::kApply);    // exactly the limit is no spike
  const Decision loss = good(guard, 6, 6.5, 1.0);
  EXPECT_EQ(loss.action, Action::kSkip);
  EXPECT_EQ(loss.trouble, Trouble::kSpikeLoss);
  const Decision gradient = good(guard, 7, 6.5, 3.5);
  EXPECT_EQ(gradient.trouble, Trouble::kSpikeGradient);
  EXPECT_EQ(gradient.text,
            "the gradient norm 3.5 is 3.5 times its running median 1; skipping the step, 98 left");
}

TEST(Guard, BadValuesDoNotEnterTheMedian) {
  Guard guard(with_spikes(3.0, 4));
  for (int64_t step = 1; step <= 4; ++step) good(guard, step, 1.0);
  for (int64_t step = 5; step <= 9; ++step) EXPECT_EQ(good(guard, step, 10.0).action, Action::kSkip);
  EXPECT_EQ(guard.state().at("losses"), nlohmann::json::array({1.0, 1.0, 1.0, 1.0}));
}

TEST(Guard, NegativeLossesAreNoSpikes) {
  Guard guard(with_spikes(2.0, 2));
  for (int64_t step = 1; step <= 4; ++step) EXPECT_EQ(good(guard, step, -5.0).action, Action::kApply);
  EXPECT_EQ(good(guard, 5, 5.0).action, Action::kApply);
}

TEST(Guard, StateKeepsEveryBit) {
  GuardSettings settings = with_spikes(0, 5);
  settings.lr_cut = 0.3;
  settings.policy = Policy::kRewind;
  Guard guard(settings);
  const double awkward[] = {0.1, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, 2.5 + 1e-15, -0.0};
  int64_t step = 0;
  for (const double x : awkward) good(guard, ++step, x, x);
  for (int i = 0; i < 3; ++i) guard.decide({++step, kNan, 1, 32});
  Guard other(settings);
  other.restore(nlohmann::json::parse(guard.state().dump()));
  EXPECT_EQ(std::bit_cast<uint64_t>(other.lr_factor()), std::bit_cast<uint64_t>(guard.lr_factor()));
  const auto before = guard.state().at("losses").get<std::vector<double>>();
  const auto after = other.state().at("losses").get<std::vector<double>>();
  ASSERT_EQ(after.size(), 5u);
  for (size_t i = 0; i < after.size(); ++i)
    EXPECT_EQ(std::bit_cast<uint64_t>(after[i]), std::bit_cast<uint64_t>(before[i]));
}

TEST(Guard, RefusesAStateThatIsNone) {
  Guard guard(with_policy(Policy::kSkip));
  EXPECT_THROW(guard.restore(nlohmann::json::object()), UserError);
  EXPECT_THROW(guard.restore(nlohmann::json::parse(
                   R"({"losses":["x"],"grad_norms":[],"skips":0,"rewinds":0,"lr_factor":1})")),
               UserError);
  EXPECT_THROW(guard.restore(nlohmann::json::parse(
                   R"({"losses":[],"grad_norms":[],"skips":0,"rewinds":0,"lr_factor":0})")),
               UserError);
}

TEST(RunningMedian, IsOneOfTheValues) {
  RunningMedian window(4);
  for (const double x : {5.0, 1.0, 4.0}) window.push(x);
  EXPECT_EQ(window.median(), 4.0);
  window.push(2.0);
  EXPECT_EQ(window.median(), 2.0);
  window.push(9.0);  // 5 has left
  EXPECT_EQ(window.median(), 2.0);
}

}  // namespace
}  // namespace lockstep
