// Which checkpoints a run goes on from, and in which words it refuses others.
#include "train/checkpoint/training_checkpoints.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/tabular.h"
#include "train/checkpoint/checkpoint_case.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

Identity identity_of(int contract, int64_t seed) {
  Identity identity;
  identity.add("contract", contract);
  if (contract > 1) identity.add("arithmetic", "fp32 0123456789abcdef");
  identity.add("train.seed", seed);
  return identity;
}

class TrainingCheckpointsOf : public ::testing::Test {
 protected:
  TrainingCheckpointsOf() {
    TrainingCheckpoints checkpoints = with(identity_of(1, 7));
    checkpoints.save(train_, 3, nlohmann::json::object(), false);
    checkpoints.finish();
  }

  TrainingCheckpoints with(const Identity& identity) { return {run_.path(), 2, identity, {}}; }
  std::string refusal(const Identity& identity) {
    try {
      with(identity).restore(train_);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  RunFolder run_;
  std::unique_ptr<Backend> backend_ = make_cpu_backend(1);
  Model model_ = build_tabular({2, 11, 4, 3, {5}, {6}, 8});
  TrainStep train_{model_, *backend_, TrainOptions{}};
};

TEST_F(TrainingCheckpointsOf, TheSameIdentityGoOn) { EXPECT_EQ(refusal(identity_of(1, 7)), ""); }

// As older versions wrote them.
TEST_F(TrainingCheckpointsOf, ThatHoldAllServeAJobThatWouldLeaveSomeOut) {
  TrainingCheckpoints checkpoints = with(identity_of(1, 7));
  const StateTensor& first = train_.state().params()[0];
  const std::vector<float> before = train_.param(first.name);
  train_.set_param(first.name, std::vector<float>(before.size(), 0.5f));
  checkpoints.leave_out({first.name});
  ASSERT_TRUE(checkpoints.restore(train_));
  EXPECT_EQ(train_.param(first.name), before);
}

TEST_F(TrainingCheckpointsOf, WhatIsLeftOutStaysAsItIs) {
  const std::vector<StateTensor>& params = train_.state().params();
  const std::vector<float> other = train_.param(params[1].name);
  const std::vector<float> half(train_.param(params[0].name).size(), 0.5f);
  {
    TrainingCheckpoints checkpoints = with(identity_of(1, 7));
    checkpoints.leave_out({params[0].name});
    checkpoints.save(train_, 4, nlohmann::json::object(), false);
    checkpoints.finish();
    train_.set_param(params[0].name, half);
    train_.set_param(params[1].name, std::vector<float>(other.size(), 0.5f));
    EXPECT_FALSE(checkpoints.restore(train_)->weights_alone);
  }
  EXPECT_EQ(train_.param(params[0].name), half);
  EXPECT_EQ(train_.param(params[1].name), other);
  // A job that needs it misses it.
  EXPECT_NE(refusal(identity_of(1, 7)).find(params[0].name), std::string::npos);
}

TEST_F(TrainingCheckpointsOf, WeightsAloneComeBackWithoutTheOptimizer) {
  TrainingCheckpoints checkpoints = with(identity_of(1, 7));
  checkpoints.save(train_, 5, nlohmann::json::object(), false, true);
  checkpoints.finish();
  EXPECT_TRUE(checkpoints.restore(train_)->weights_alone);
}

TEST_F(TrainingCheckpointsOf, AnotherJobAreRefusedWithWhatDiffers) {
  const std::string text = refusal(identity_of(1, 8));
  EXPECT_NE(text.find("was written by another job"), std::string::npos) << text;
  EXPECT_NE(text.find("train.seed: checkpoint 7, job 8\n"), std::string::npos) << text;
}

TEST_F(TrainingCheckpointsOf, AnOlderContractAreRefusedWithWhatChanged) {
  const std::string text = refusal(identity_of(2, 7));
  for (const char* part : {"version of Lockstep under whose contract", "contract: checkpoint 1, job 2\n",
                           "arithmetic: checkpoint has none, job fp32 0123456789abcdef\n",
                           "finish the run with the version that began it"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep
