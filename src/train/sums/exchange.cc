#include "train/sums/exchange.h"

#include <algorithm>

#include "base/error.h"
#include "train/state/group_memory.h"
#include "train/sums/device_exchange.h"

namespace lockstep {
namespace {

class DirectExchange : public Exchange {
 public:
  DirectExchange(Group& group, Backend& backend, SumOrder order)
      : group_(group), backend_(backend), order_(order) {}

  std::unique_ptr<Buffer> allocate(int64_t bytes) override {
    return in_host_memory() ? peer_memory(group_, bytes) : backend_.allocate(bytes);
  }

  Group::Ticket start(SumType type, std::span<void* const> partials, const BucketTransfer& bucket) override {
    const int64_t count = bucket.count;
    Reduction reduction{.type = type, .count = count, .order = order_, .label = bucket.label};
    std::vector<void*> reached(partials.begin(), partials.end());
    const Slice mine =
        bucket.whom == SumFor::kAll ? Slice{0, count} : slice_of(count, group_.size(), group_.rank());
    reduction.before = bucket.began;
    reduction.after = bucket.ended;
    if (!in_host_memory()) stage(partials, mine, bucket, reduction, reached);
    reduction.partials = reached;
    return start_sum(group_, reduction, bucket);
  }

  void sum(SumType type, int64_t count, std::span<void* const> partials, const std::string& label) override {
    group_.all_reduce({.type = type, .count = count, .partials = partials, .order = order_, .label = label});
  }

 private:
  bool in_host_memory() const { return backend_.memory() == MemoryKind::kHost; }

  // The group runs one collective at a time, so that all of them can pass through the same memory: in when
  // the bucket is final, out when it is summed, both on the thread that runs the collective.
  void stage(std::span<void* const> partials, Slice mine, const BucketTransfer& bucket, Reduction& reduction,
             std::vector<void*>& reached) {
    const int64_t element = size_of(reduction.type);
    const int64_t bytes = bucket.count * element;
    make_room(static_cast<int64_t>(partials.size()), bytes);
    for (size_t p = 0; p < partials.size(); ++p)
      reached[p] = staging_.data() + static_cast<int64_t>(p) * staging_stride_;
    Stream& stream = backend_.stream(StreamKind::kCommunication);
    reduction.before = [&stream, began = bucket.began, bytes, reached, ready = backend_.compute().record(),
                        from = std::vector<void*>(partials.begin(), partials.end())] {
      if (began) began();
      stream.wait(ready);
      for (size_t p = 0; p < from.size(); ++p) stream.copy(reached[p], from[p], bytes);
      stream.synchronize();
    };
    const auto at = [&](void* base) -> void* { return static_cast<char*>(base) + mine.begin * element; };
    reduction.after = [&stream, ended = bucket.ended, summed = mine.size() * element, from = at(reached[0]),
                       to = at(partials[0])] {
      if (summed > 0) stream.copy(to, from, summed);
      stream.synchronize();
      if (ended) ended();
    };
  }

  // The first bucket of a step is as large as any other.
  void make_room(int64_t partials, int64_t bytes) {
    if (staging_.bytes() >= partials * bytes) return;
    LOCKSTEP_CHECK(staging_.bytes() == 0, "a bucket of {} bytes after smaller ones", bytes);
    staging_stride_ = bytes;
    staging_ = StagingMemory(group_, backend_, partials * bytes);
  }

  Group& group_;
  Backend& backend_;
  SumOrder order_;
  StagingMemory staging_;
  int64_t staging_stride_ = 0;
};

}  // namespace

Group::Ticket start_sum(Group& group, const Reduction& reduction, const BucketTransfer& bucket) {
  const bool all = bucket.whom == SumFor::kAll;
  if (!bucket.last) return all ? group.start_all_reduce(reduction) : group.start_reduce_scatter(reduction);
  all ? group.all_reduce(reduction) : group.reduce_scatter(reduction);
  return nullptr;
}

std::unique_ptr<Exchange> make_direct_exchange(Group& group, Backend& backend, SumOrder order,
                                               const DeviceReach* reach) {
  if (reach != nullptr && reach->is_direct())
    return std::make_unique<DeviceExchange>(group, backend, *reach, order);
  return std::make_unique<DirectExchange>(group, backend, order);
}

}  // namespace lockstep
