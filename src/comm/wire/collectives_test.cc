// All collectives over hosts, against their definitions.
#include "comm/wire/collectives.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "comm/tree_testing.h"
#include "comm/wire/wire_testing.h"

namespace lockstep {
namespace {

using testing::all_host_maps;
using testing::on_hosts;

// Some sizes go in one round, some in one chunk each, some in many; some owners get nothing.
constexpr int64_t kCounts[] = {1, 1500, 9000, 20001, 300007};

template <typename T>
struct Partials {
  Partials(Group& group, int64_t count, bool shared)
      : sums(testing::partial_sums<T>(group.split(), group.rank(), count)) {
    for (auto& sum : sums) {
      buffers.push_back(group.allocate(count * static_cast<int64_t>(sizeof(T))));
      std::memcpy(buffers.back().data(), sum.data(), sum.size() * sizeof(T));
      pointers.push_back(shared ? static_cast<void*>(buffers.back().data()) : sum.data());
    }
  }
  const T* result() const { return static_cast<const T*>(pointers[0]); }
  // The partial sums after the first are left as they were.
  bool others_are_kept() const {
    for (size_t i = 1; i < sums.size(); ++i)
      if (std::memcmp(buffers[i].data(), sums[i].data(), sums[i].size() * sizeof(T)) != 0) return false;
    return true;
  }

  std::vector<std::vector<T>> sums;
  std::vector<SharedBuffer> buffers;
  std::vector<void*> pointers;
};

template <typename T>
void check_all_reduce(Group& group, SumType type, int64_t count, bool shared) {
  Partials<T> partials(group, count, shared);
  group.all_reduce({type, count, partials.pointers});
  EXPECT_TRUE(
      testing::same_bits(partials.result(), testing::expected_root<T>(group.split().leaves(), count)) &&
      partials.others_are_kept())
      << group.split().text() << ", " << count << " elements, " << name_of(type);
}

template <typename T>
void check_reduce_scatter(Group& group, SumType type, int64_t count, bool shared) {
  Partials<T> partials(group, count, shared);
  const std::vector<T> before(partials.result(), partials.result() + count);
  const auto root = testing::expected_root<T>(group.split().leaves(), count);
  group.reduce_scatter({type, count, partials.pointers});
  const Slice mine = slice_of(count, group.size(), group.rank());
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    ASSERT_EQ(partials.result()[i], i >= mine.begin && i < mine.end ? root[at] : before[at]) << i;
  }
  group.all_gather({partials.pointers[0], count, sizeof(T)});
  EXPECT_TRUE(testing::same_bits(partials.result(), root)) << group.split().text() << ", " << count;
}

TEST(WireCollectives, AllReduceGivesTheBitsOfOneRankOnEveryMapOfHosts) {
  for (const int ranks : {2, 3, 4, 5})
    for (const std::vector<int>& sizes : all_host_maps(ranks)) {
      SCOPED_TRACE(fmt::format("hosts with {} ranks", fmt::join(sizes, " + ")));
      on_hosts(sizes, LeafSplit::search(8, ranks), [](Group& group) {
        for (const int64_t count : {1, 1500, 20001})
          check_all_reduce<float>(group, SumType::kF32, count, true);
        check_all_reduce<int64_t>(group, SumType::kI64, 6000, true);
      });
    }
}

TEST(WireCollectives, EverySplitOfTheLeavesOverHosts) {
  // Three ranks on two hosts: the hosts' partial sums come out in every number and order.
  constexpr int64_t kLeaves = 7;
  for (int64_t first = 1; first < kLeaves - 1; ++first)
    for (int64_t second = first + 1; second < kLeaves; ++second)
      for (const std::vector<int>& sizes : {std::vector{2, 1}, std::vector{1, 2}, std::vector{1, 1, 1}})
        on_hosts(sizes, LeafSplit(kLeaves, {first, second, kLeaves}), [](Group& group) {
          check_all_reduce<float>(group, SumType::kF32, 100, true);
          check_all_reduce<float>(group, SumType::kF32, 9000, true);
        });
}

TEST(WireCollectives, LargeAndUnevenHosts) {
  for (const std::vector<int>& sizes : {std::vector{1, 1}, std::vector{2, 1}, std::vector{3, 3, 2}})
    for (const bool shared : {true, false})
      on_hosts(sizes, LeafSplit::search(16, testing::hosts_of(sizes).ranks()), [&](Group& group) {
        for (const int64_t count : kCounts) check_all_reduce<float>(group, SumType::kF32, count, shared);
        check_all_reduce<int64_t>(group, SumType::kI64, 100003, shared);
      });
}

TEST(WireCollectives, ReduceScatterThenGatherIsAllReduce) {
  for (const std::vector<int>& sizes :
       {std::vector{1, 1, 1}, std::vector{2, 1}, std::vector{1, 3}, std::vector{2, 2}})
    for (const bool shared : {true, false})
      on_hosts(sizes, LeafSplit::search(8, testing::hosts_of(sizes).ranks()), [&](Group& group) {
        for (const int64_t count : kCounts) check_reduce_scatter<float>(group, SumType::kF32, count, shared);
      });
}

TEST(WireCollectives, GatherIntoMemoryThatAHostHoldsOnce) {
  for (const std::vector<int>& sizes :
       {std::vector{3}, std::vector{1, 1}, std::vector{2, 1}, std::vector{1, 3}, std::vector{2, 3, 1}})
    on_hosts(sizes, LeafSplit::one_each(testing::hosts_of(sizes).ranks()), [&](Group& group) {
      for (const int64_t count : kCounts) {
        const HostBuffer buffer = group.allocate_for_host(count * 4);
        auto* const values = reinterpret_cast<float*>(buffer.data());
        const Slice mine = slice_of(count, group.size(), group.rank());
        for (int64_t i = mine.begin; i < mine.end; ++i) values[i] = static_cast<float>(i % 1013 + 1);
        bool before = false, after = false;
        group.all_gather({.data = values,
                          .count = count,
                          .held_once = true,
                          .before = [&] { before = true; },
                          .after = [&] { after = before; }});
        EXPECT_TRUE(after);
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(values[i], static_cast<float>(i % 1013 + 1)) << i << " of " << count;
        group.barrier();
      }
    });
}

TEST(WireCollectives, FastOrderIsTheTreeOverRanks) {
  for (const std::vector<int>& sizes : {std::vector{1, 1, 1}, std::vector{2, 1}, std::vector{2, 3}})
    on_hosts(sizes, LeafSplit::search(16, testing::hosts_of(sizes).ranks()), [](Group& group) {
      for (const int64_t count : {3, 9000}) {
        SharedBuffer buffer = group.allocate(count * 4);
        for (int64_t i = 0; i < count; ++i)
          buffer.as<float>()[i] = testing::leaf_value<float>(group.rank(), i);
        void* const pointer = buffer.data();
        group.all_reduce({SumType::kF32, count, {&pointer, 1}, SumOrder::kFast});
        EXPECT_TRUE(
            testing::same_bits(buffer.as<float>(), testing::expected_root<float>(group.size(), count)));
      }
    });
}

TEST(WireCollectives, BroadcastFromAnyRoot) {
  for (const std::vector<int>& sizes : {std::vector{1, 1, 1}, std::vector{2, 1}, std::vector{1, 2, 2}})
    on_hosts(sizes, LeafSplit::one_each(testing::hosts_of(sizes).ranks()), [](Group& group) {
      for (const int64_t bytes : {1, 3000, 100000, 1200001})
        for (int root = 0; root < group.size(); ++root)
          for (const bool shared : {false, true}) {
            std::vector<std::byte> own(static_cast<size_t>(bytes));
            SharedBuffer buffer = group.allocate(bytes);
            std::byte* data = shared ? buffer.data() : own.data();
            std::vector<std::byte> expected(own.size());
            for (size_t i = 0; i < expected.size(); ++i)
              expected[i] = static_cast<std::byte>(i * 31 + static_cast<size_t>(root));
            if (group.rank() == root) std::memcpy(data, expected.data(), expected.size());
            group.broadcast({data, expected.size()}, root);
            EXPECT_TRUE(testing::same_bits(data, expected)) << bytes << " bytes from " << root;
          }
    });
}

TEST(WireCollectives, AllToAllTransposes) {
  for (const std::vector<int>& sizes : {std::vector{1, 1, 1}, std::vector{2, 1}, std::vector{2, 2}})
    on_hosts(sizes, LeafSplit::one_each(testing::hosts_of(sizes).ranks()), [](Group& group) {
      for (const int64_t piece : {1, 1000, 200001})
        for (const bool shared : {false, true}) {
          const int64_t bytes = piece * group.size();
          std::vector<std::byte> own(static_cast<size_t>(bytes));
          std::vector<std::byte> received(static_cast<size_t>(bytes));
          SharedBuffer buffer = group.allocate(bytes);
          std::byte* data = shared ? buffer.data() : own.data();
          const auto value = [](int from, int to, int64_t i) {
            return static_cast<std::byte>(from * 64 + to * 16 + i % 13);
          };
          for (int to = 0; to < group.size(); ++to)
            for (int64_t i = 0; i < piece; ++i) data[to * piece + i] = value(group.rank(), to, i);
          group.all_to_all({data, static_cast<size_t>(bytes)}, received);
          for (int from = 0; from < group.size(); ++from)
            for (int64_t i = 0; i < piece; ++i)
              ASSERT_EQ(received[static_cast<size_t>(from * piece + i)], value(from, group.rank(), i));
        }
    });
}

TEST(WireCollectives, MessagesCrossWithinAndBetweenHosts) {
  on_hosts({2, 1}, LeafSplit::one_each(3), [](Group& group) {
    const int next = (group.rank() + 1) % 3;
    const int previous = (group.rank() + 2) % 3;
    std::vector<std::byte> out(70000, static_cast<std::byte>(group.rank()));
    std::vector<std::byte> in(70000);
    const auto sent = group.start_send(next, out);
    group.receive(previous, in);
    group.wait(sent);
    EXPECT_EQ(in, std::vector<std::byte>(70000, static_cast<std::byte>(previous)));
  });
}

}  // namespace
}  // namespace lockstep
