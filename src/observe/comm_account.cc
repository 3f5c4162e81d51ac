#include "observe/comm_account.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace lockstep {
namespace {

constexpr double kMiB = 1 << 20;

}  // namespace

double exposed_with(const std::vector<CommBucket>& buckets, const std::vector<double>& transfer) {
  double free = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < buckets.size(); ++i) free = std::max(free, -buckets[i].ahead_ms) + transfer[i];
  return buckets.empty() ? 0 : std::max(0.0, free);
}

CommunicationSummary account_of(const std::vector<CommBucket>& buckets, double step_ms,
                                const CommSetting& setting) {
  CommunicationSummary account;
  account.step_ms = step_ms;
  account.buckets = buckets;
  std::vector<double> now;
  double megabytes = 0;
  for (const CommBucket& bucket : buckets) {
    account.exposed_ms += bucket.exposed_ms;
    now.push_back(bucket.transfer_ms);
    megabytes += static_cast<double>(bucket.bytes) / kMiB;
  }
  account.modelled_ms = exposed_with(buckets, now);

  // What carries `share` of the bytes, with so much coding for each MiB on the way and in the worker.
  const auto with = [&](std::string name, double share, double coding, double own, std::string note) {
    std::vector<double> transfer;
    for (const CommBucket& bucket : buckets) {
      const double latency = std::min(setting.latency_ms, bucket.transfer_ms);
      transfer.push_back(latency + (bucket.transfer_ms - latency) * share +
                         coding * static_cast<double>(bucket.bytes) / kMiB);
    }
    CommOption option{
        .name = std::move(name), .exposed_ms = exposed_with(buckets, transfer), .note = std::move(note)};
    option.saves_ms = account.modelled_ms - option.exposed_ms - own * megabytes;
    option.step_ms = step_ms - option.saves_ms;
    account.options.push_back(std::move(option));
  };
  with("no communication", 0, 0, 0, "the bound");
  account.options.back().exposed_ms = 0;
  account.options.back().saves_ms = account.modelled_ms;
  account.options.back().step_ms = step_ms - account.modelled_ms;
  with("twice the bandwidth", 0.5, 0, 0, "");
  if (setting.hosts > 1 && !setting.served) {
    const double hosts = setting.hosts;
    with("Reduction Servers", setting.hosts == 2 ? 1 : hosts / (2 * (hosts - 1)), 0, 0,
         setting.hosts == 2
             ? "never between two hosts"
             : fmt::format("that together have the bandwidth of {} workers' hosts", setting.hosts));
  }
  for (const CommSetting::Codec& codec : setting.codecs)
    with("compress: " + codec.name, codec.bytes / setting.bytes, codec.coding_ms, codec.own_ms, codec.note);
  return account;
}

}  // namespace lockstep
