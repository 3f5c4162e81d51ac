#include "train/bucket_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "runtime/flat.h"

namespace lockstep {
namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kBlockBytes = kFlatBlock * kFloat;
constexpr int64_t kSmall = kBlockBytes;
constexpr int64_t kMiddle = 256 << 10;
constexpr int64_t kLarge = 4 << 20;
constexpr int kTries = 5;
// A link on which 256 KiB take longer than this says all about its bandwidth already.
constexpr double kSlowMiddle = 2e-3;

int64_t whole_blocks(int64_t bytes) {
  return std::max<int64_t>(1, (bytes + kBlockBytes - 1) / kBlockBytes) * kBlockBytes;
}

// The quickest of a few: what the collective takes when nobody is late.
double time_all_reduce(Group& group, SharedBuffer& memory, int64_t bytes, SumOrder order) {
  const size_t partials = order == SumOrder::kFast ? 1 : group.split().partials(group.rank()).size();
  std::vector<void*> sums;
  for (size_t p = 0; p < partials; ++p)
    sums.push_back(memory.data() + static_cast<int64_t>(p) * whole_blocks(bytes));
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    group.barrier("measuring buckets");
    const auto start = std::chrono::steady_clock::now();
    group.all_reduce({.type = SumType::kF32,
                      .count = bytes / kFloat,
                      .partials = sums,
                      .order = order,
                      .label = "measuring buckets"});
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

std::string size_text(int64_t bytes) {
  if (bytes < (1 << 20)) return fmt::format("{:.0f} KiB", static_cast<double>(bytes) / (1 << 10));
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

int64_t best_bucket(int64_t total, double latency, double bytes_per_second, int ranks) {
  const auto best = static_cast<int64_t>(std::sqrt(static_cast<double>(total) * latency * bytes_per_second));
  // Ranks own whole blocks of a bucket: with few blocks each, some would have much more to do than others.
  const int64_t least = 8 * kBlockBytes * ranks;
  return std::min(whole_blocks(std::max(best, least)), whole_blocks(total));
}

BucketChoice fixed_buckets(int64_t bytes, int64_t total) {
  return {.bytes = std::min(whole_blocks(bytes), whole_blocks(total)), .total = total};
}

BucketChoice measure_buckets(Group& group, int64_t total, SumOrder order) {
  if (total <= kMiddle) return fixed_buckets(total, total);
  SharedBuffer memory = group.allocate(kLarge * std::max<int64_t>(1, group.split().max_partials()));
  const double small = time_all_reduce(group, memory, kSmall, order);
  int64_t bytes = kMiddle;
  double seconds = time_all_reduce(group, memory, bytes, order);
  int64_t slow = seconds > kSlowMiddle ? 1 : 0;
  group.broadcast(std::as_writable_bytes(std::span(&slow, 1)), 0, "measuring buckets");
  if (slow == 0 && total > kLarge) {
    bytes = kLarge;
    seconds = time_all_reduce(group, memory, bytes, order);
  }
  BucketChoice choice;
  choice.total = total;
  choice.latency = small;
  choice.bytes_per_second = static_cast<double>(bytes - kSmall) / std::max(seconds - small, 1e-9);
  choice.bytes = best_bucket(total, choice.latency, choice.bytes_per_second, group.size());
  // Everybody has measured; the first rank's figures hold.
  group.broadcast(std::as_writable_bytes(std::span(&choice, 1)), 0, "measuring buckets");
  return choice;
}

std::string BucketChoice::text() const {
  std::string out = count() == 1 ? fmt::format("one of {}", size_text(total))
                                 : fmt::format("{} of {}", count(), size_text(bytes));
  if (latency > 0)
    out += fmt::format(", since all_reduce takes {:.0f} us + {:.2f} ms a MiB", latency * 1e6,
                       (1 << 20) / bytes_per_second * 1e3);
  return out;
}

}  // namespace lockstep
