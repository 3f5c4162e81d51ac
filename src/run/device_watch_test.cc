#include "run/device_watch.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"

namespace lockstep {
namespace {

TEST(DeviceUses, MeansAndPeaksAreOfTheMomentsThatHaveTheFigure) {
  DeviceUses uses;
  EXPECT_FALSE(uses.summary());
  uses.add({.utilization = 0.5, .memory_bytes = 1e9, .power_w = 100});
  uses.add({.utilization = 1.0, .memory_bytes = 3e9});
  EXPECT_EQ(uses.latest(), (DeviceUse{.utilization = 1.0, .memory_bytes = 3e9}));
  const DeviceSummary summary = uses.summary().value();
  EXPECT_EQ(summary.samples, 2);
  EXPECT_EQ(summary.mean, (DeviceUse{.utilization = 0.75, .memory_bytes = 2e9, .power_w = 100}));
  EXPECT_EQ(summary.peak, (DeviceUse{.utilization = 1.0, .memory_bytes = 3e9, .power_w = 100}));
}

class Counting : public DeviceMonitor {
 public:
  explicit Counting(std::atomic<int>& asked) : asked_(asked) {}
  DeviceUse now() override {
    const int nth = ++asked_;
    asked_.notify_all();
    return {.sm_mhz = nth};
  }

 private:
  std::atomic<int>& asked_;
};

TEST(DeviceWatch, AsksAgainAndAgain) {
  std::atomic<int> asked = 0;
  DeviceWatch watch([&] { return std::make_unique<Counting>(asked); }, std::chrono::milliseconds(1));
  for (int seen = asked; seen < 3; seen = asked) asked.wait(seen);
  // The third moment was begun, so the second has been kept.
  EXPECT_GE(watch.summary().value().samples, 2);
  EXPECT_GE(watch.latest().value().sm_mhz, 2);
}

TEST(DeviceWatch, WithoutFiguresThereIsNone) {
  const DeviceWatch none([] { return nullptr; });
  EXPECT_FALSE(none.latest());
  const DeviceWatch refused([]() -> std::unique_ptr<DeviceMonitor> { throw DeviceError("no NVML"); });
  EXPECT_FALSE(refused.summary());
}

}  // namespace
}  // namespace lockstep
