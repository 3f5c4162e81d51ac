#include "run/device_watch.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/log.h"

namespace lockstep {
namespace {

constexpr std::array kFigureOf = {&DeviceUse::utilization, &DeviceUse::memory_bytes, &DeviceUse::sm_mhz,
                                  &DeviceUse::power_w, &DeviceUse::temperature_c};

}  // namespace

void DeviceUses::add(const DeviceUse& use) {
  latest_ = use;
  ++samples_;
  for (size_t i = 0; i < kFigures; ++i) {
    const std::optional<double>& value = use.*kFigureOf[i];
    if (!value) continue;
    Figure& figure = figures_[i];
    figure.sum += *value;
    figure.peak = figure.count == 0 ? *value : std::max(figure.peak, *value);
    ++figure.count;
  }
}

std::optional<DeviceSummary> DeviceUses::summary() const {
  if (samples_ == 0) return std::nullopt;
  DeviceSummary summary;
  summary.samples = samples_;
  for (size_t i = 0; i < kFigures; ++i) {
    const Figure& figure = figures_[i];
    if (figure.count == 0) continue;
    summary.mean.*kFigureOf[i] = figure.sum / static_cast<double>(figure.count);
    summary.peak.*kFigureOf[i] = figure.peak;
  }
  return summary;
}

DeviceWatch::DeviceWatch(Open open, std::chrono::milliseconds every)
    : thread_([this, open = std::move(open), every] { watch(open, every); }) {}

DeviceWatch::~DeviceWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void DeviceWatch::watch(const Open& open, std::chrono::milliseconds every) {
  std::unique_ptr<DeviceMonitor> monitor;
  try {
    monitor = open();
  } catch (const Error& error) {
    log_info("no figures of the device's use: {}", error.what());
  }
  if (monitor == nullptr) return;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const DeviceUse use = monitor->now();
    lock.lock();
    uses_.add(use);
    wake_.wait_for(lock, every, [this] { return stopping_; });
  }
}

std::optional<DeviceUse> DeviceWatch::latest() const {
  const std::lock_guard lock(mutex_);
  return uses_.latest();
}

std::optional<DeviceSummary> DeviceWatch::summary() const {
  const std::lock_guard lock(mutex_);
  return uses_.summary();
}

}  // namespace lockstep
