// A reader in the background sees the state of one step, whatever training does meanwhile.
#include "train/state/state_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "model/gpt.h"
#include "model/resnet.h"
#include "model/tabular.h"
#include "train/state/state_hash.h"
#include "train/step/synthetic.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

TEST(StateGate, IsOpenUntilHeldAndAgainAfterTheLastHold) {
  StateGate gate;
  gate.wait();
  StateGate::Hold first = gate.hold();
  StateGate::Hold second = gate.hold();
  first.reset();
  std::atomic<bool> through = false;
  std::thread waiter([&] {
    gate.wait();
    through = true;
  });
  while (!gate.is_awaited()) std::this_thread::yield();
  EXPECT_FALSE(through);
  second.reset();
  waiter.join();
  EXPECT_TRUE(through);
  EXPECT_GT(gate.waited_seconds(), 0);
}

class StateReader : public ::testing::Test {
 protected:
  // Reads all tensors on another thread, but not before `change` waits at the gate or is over: whoever
  // changes the state without waiting is found.
  void expect_waits(const char* what, TrainStep& train, const std::function<void()>& change) const {
    const TrainState& state = train.state();
    std::vector<StateTensor> all = state.model();
    all.insert(all.end(), state.optimizer().begin(), state.optimizer().end());
    all.insert(all.end(), state.averages().begin(), state.averages().end());
    const std::string before = sha256_of(*backend_, all);
    StateGate::Hold hold = state.gate().hold();
    std::atomic<bool> over = false;
    std::string read;
    std::thread reader([&] {
      while (!over && !state.gate().is_awaited()) std::this_thread::yield();
      read = sha256_of(*backend_, all);
      hold.reset();
    });
    change();
    over = true;
    reader.join();
    EXPECT_EQ(read, before) << what;
    EXPECT_NE(sha256_of(*backend_, all), before) << what << " changes nothing";
  }

  void expect_every_change_waits(const Model& model, const TrainOptions& options) const {
    TrainStep train(model, *backend_, options);
    const auto load = [&](int64_t m) { set_synthetic_inputs(train, model, 3, m); };
    for (int step = 0; step < 3; ++step) train.run(1e-2, load);
    train.state();
    {
      // Forward and backward only read it.
      const StateGate::Hold hold = train.state().gate().hold();
      train.accumulate(load);
    }
    expect_waits("the update", train, [&] { train.apply(1e-2); });
    const StateTensor& some = train.params().front();
    expect_waits("a parameter that is set", train, [&] {
      train.set_param(some.name, std::vector<float>(static_cast<size_t>(some.shape.numel()), 0.25f));
    });
  }

  std::unique_ptr<Backend> backend_ = make_cpu_backend(2);
};

TEST_F(StateReader, SeesOneStepOfDenseParametersAndAverages) {
  TrainOptions options;
  options.ema = 0.9;
  expect_every_change_waits(build_gpt({1, 24, 2, 31, 2, 9, 0.0}), options);
}

TEST_F(StateReader, SeesOneStepOfTablesThatAreUpdatedLate) {
  expect_every_change_waits(build_tabular({2, 400, 8, 3, {9}, {7}, 6}), {});
}

TEST_F(StateReader, SeesOneStepOfRunningStatistics) {
  expect_every_change_waits(build_resnet({.depth = 18, .width = 4, .image = 32, .classes = 3, .batch = 2}),
                            {});
}

}  // namespace
}  // namespace lockstep
