// Transfers between late devices that reach each other's memory, several under way at once, again and again:
// nobody writes what a neighbour has yet to read.
#include "runtime/device_transfers.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/ranks_testing.h"
#include "comm/tree_testing.h"
#include "device/late_backend.h"

namespace lockstep {
namespace {

constexpr int64_t kCount = 300;
constexpr int64_t kBytes = kCount * int64_t{sizeof(float)};

Transfer transfer(CollectiveKind kind, int ranks, int64_t place, bool alone) {
  Transfer one;
  one.kind = kind;
  one.alone = alone;
  one.group = "tensor";
  one.size = ranks;
  one.label = "transfer";
  one.operand = {1, 1, kCount, kCount};
  one.result = {kind == CollectiveKind::kAllGather ? ranks : 1, 1, kCount, kCount};
  one.bytes = kBytes;
  one.offset = place * 2048;
  return one;
}

float element(int rank, int64_t round, int64_t i) {
  return 1.0F / static_cast<float>(1 + i * 7 + rank * 13 + round * 101) * (i % 3 == 0 ? -1.0F : 1.0F);
}

class Tensor {
 public:
  Tensor(Backend& backend, int64_t count) : backend_(backend), memory_(backend.allocate(count * 4)) {}
  void* data() { return memory_->data(); }
  // On the stream, as a kernel would.
  void fill(int rank, int64_t round) {
    host_.resize(static_cast<size_t>(memory_->bytes()) / 4);
    for (size_t i = 0; i < host_.size(); ++i) host_[i] = element(rank, round, static_cast<int64_t>(i));
    backend_.upload(memory_->data(), host_.data(), memory_->bytes());
  }
  std::vector<float> read() {
    host_.resize(static_cast<size_t>(memory_->bytes()) / 4);
    backend_.download(host_.data(), memory_->data(), memory_->bytes());
    return host_;
  }

 private:
  Backend& backend_;
  std::unique_ptr<Buffer> memory_;
  std::vector<float> host_;
};

TEST(DeviceTransfers, AreThoseOfTheRoundAtHand) {
  constexpr int kRanks = 3;
  testing::on_threads(LeafSplit::one_each(kRanks), [&](Group& group) {
    const auto backend = testing::make_sharing_late_backend(1);
    const auto transfers = DeviceTransfers::between(group, *backend, {});
    ASSERT_TRUE(transfers);
    const Transfer sum = transfer(CollectiveKind::kAllReduce, kRanks, 0, false);
    const Transfer other = transfer(CollectiveKind::kAllReduce, kRanks, 1, false);
    const Transfer gather = transfer(CollectiveKind::kAllGather, kRanks, 0, true);
    transfers->reserve(4096);
    Tensor x(*backend, kCount), y(*backend, kCount), sum_x(*backend, kCount), sum_y(*backend, kCount),
        all(*backend, kRanks * kCount);
    for (int64_t round = 0; round < 20; ++round) {
      x.fill(group.rank(), round);
      y.fill(group.rank(), -round - 1);
      transfers->start(sum, x.data());
      transfers->start(other, y.data());
      transfers->finish(sum, sum_x.data());
      transfers->finish(other, sum_y.data());
      transfers->start(gather, y.data());
      transfers->finish(gather, all.data());
      // Some rounds end with work that nobody has waited for.
      if (round % 3 == 1) continue;
      const std::vector<float> found_x = sum_x.read(), found_y = sum_y.read(), found = all.read();
      for (int64_t i = 0; i < kCount; ++i) {
        const auto at = static_cast<size_t>(i);
        const auto root = [&](int64_t of) {
          return testing::tree_root<float>(
              kRanks, [&](int64_t rank) { return element(static_cast<int>(rank), of, i); });
        };
        ASSERT_EQ(found_x[at], root(round)) << round;
        ASSERT_EQ(found_y[at], root(-round - 1)) << round;
        for (int rank = 0; rank < kRanks; ++rank)
          ASSERT_EQ(found[static_cast<size_t>(rank * kCount + i)], element(rank, -round - 1, i)) << round;
      }
    }
  });
}

TEST(DeviceTransfers, NoneWhereDevicesDoNotReachEachOther) {
  testing::on_threads(LeafSplit::one_each(2), [&](Group& group) {
    EXPECT_FALSE(DeviceTransfers::between(group, *make_cpu_backend(1), {}));
    EXPECT_FALSE(DeviceTransfers::between(group, *testing::make_late_backend(1), {}));
    const auto reached = testing::make_sharing_late_backend(1);
    EXPECT_FALSE(DeviceTransfers::between(group, *reached, {.route = DeviceRoute::kHost}));
    EXPECT_TRUE(DeviceTransfers::between(group, *reached, {.route = DeviceRoute::kDevice}));
    EXPECT_THROW(
        DeviceTransfers::between(group, *testing::make_late_backend(1), {.route = DeviceRoute::kDevice}),
        UserError);
  });
}

}  // namespace
}  // namespace lockstep
