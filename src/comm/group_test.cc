#include "comm/group.h"

#include <gtest/gtest.h>

#include <latch>

#include "base/does_not_fit.h"
#include "base/number_text.h"
#include "comm/ranks_testing.h"
#include "comm/tree_testing.h"

namespace lockstep {
namespace {

using testing::expected_root;
using testing::on_threads;
using testing::partial_sums;
using testing::same_bits;

// Partial sums of this rank, in memory that peers can read or in memory of its own.
template <typename T>
struct Partials {
  Partials(Group& group, int64_t count, bool shared)
      : sums(partial_sums<T>(group.split(), group.rank(), count)) {
    for (auto& sum : sums) {
      if (!shared) {
        pointers.push_back(sum.data());
        continue;
      }
      buffers.push_back(group.allocate(count * static_cast<int64_t>(sizeof(T))));
      std::memcpy(buffers.back().data(), sum.data(), sum.size() * sizeof(T));
      pointers.push_back(buffers.back().data());
    }
  }
  const T* result() const { return static_cast<const T*>(pointers[0]); }

  std::vector<std::vector<T>> sums;
  std::vector<SharedBuffer> buffers;
  std::vector<void*> pointers;
};

template <typename T>
void check_all_reduce(Group& group, SumType type, int64_t count, bool shared) {
  Partials<T> partials(group, count, shared);
  group.all_reduce({type, count, partials.pointers});
  EXPECT_TRUE(same_bits(partials.result(), expected_root<T>(group.split().leaves(), count)))
      << group.split().text() << ", " << count << " elements, " << name_of(type);
}

TEST(Group, AllReduceGivesTheBitsOfOneRank) {
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8}) {
    on_threads(LeafSplit::search(16, ranks), [](Group& group) {
      for (const bool shared : {false, true})
        for (const int64_t count : {1, 7, 1024, 9000, 70001}) {
          check_all_reduce<float>(group, SumType::kF32, count, shared);
          if (count > 9000) continue;
          check_all_reduce<int64_t>(group, SumType::kI64, count, shared);
        }
    });
  }
}

TEST(Group, LeavesThatAreNoPowerOfTwo) {
  for (const int64_t leaves : {3, 5, 6, 7, 12})
    for (const int ranks : {1, 2, 3}) {
      on_threads(LeafSplit::search(leaves, ranks), [](Group& group) {
        check_all_reduce<float>(group, SumType::kF32, 100, true);
        check_all_reduce<float>(group, SumType::kF32, 8192, true);
      });
    }
}

TEST(Group, FastOrderSumsOneBufferPerRank) {
  on_threads(LeafSplit::search(16, 3), [](Group& group) {
    SharedBuffer buffer = group.allocate(40000);
    for (int64_t i = 0; i < 10000; ++i) buffer.as<float>()[i] = static_cast<float>(group.rank() + 1);
    void* const pointer = buffer.data();
    group.all_reduce({SumType::kF32, 10000, {&pointer, 1}, SumOrder::kFast});
    EXPECT_EQ(buffer.as<float>()[0], 6);
    EXPECT_EQ(buffer.as<float>()[9999], 6);
  });
}

TEST(Group, ReduceScatterThenGatherIsAllReduce) {
  for (const int ranks : {1, 2, 3, 5})
    on_threads(LeafSplit::search(8, ranks), [](Group& group) {
      for (const bool shared : {false, true})
        for (const int64_t count : {5, 4096, 70001}) {
          Partials<float> partials(group, count, shared);
          const auto expected = expected_root<float>(8, count);
          group.reduce_scatter({SumType::kF32, count, partials.pointers});
          const Slice mine = slice_of(count, group.size(), group.rank());
          EXPECT_EQ(std::memcmp(partials.result() + mine.begin, expected.data() + mine.begin,
                                static_cast<size_t>(mine.size()) * 4),
                    0);
          group.all_gather({partials.pointers[0], count, 4});
          EXPECT_TRUE(same_bits(partials.result(), expected));
        }
    });
}

TEST(Group, SlicesCoverEverythingOnBlockEdges) {
  for (const int64_t count : {1, 1024, 5000, 1 << 20})
    for (int ranks = 1; ranks <= 9; ++ranks) {
      int64_t end = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Slice slice = slice_of(count, ranks, rank);
        EXPECT_EQ(slice.begin, end);
        EXPECT_TRUE(slice.begin % kSliceBlock == 0 || slice.begin == count);
        end = slice.end;
      }
      EXPECT_EQ(end, count);
    }
}

TEST(Group, BroadcastFromAnyRoot) {
  on_threads(LeafSplit::one_each(3), [](Group& group) {
    for (const int64_t bytes : {1, 3000, 100000, 600001})
      for (int root = 0; root < group.size(); ++root)
        for (const bool shared : {false, true}) {
          std::vector<std::byte> own(static_cast<size_t>(bytes));
          SharedBuffer buffer = group.allocate(bytes);
          std::byte* data = shared ? buffer.data() : own.data();
          for (int64_t i = 0; i < bytes && group.rank() == root; ++i)
            data[i] = static_cast<std::byte>(i * 31 + root);
          group.broadcast({data, static_cast<size_t>(bytes)}, root);
          for (int64_t i = 0; i < bytes; ++i)
            ASSERT_EQ(data[i], static_cast<std::byte>(i * 31 + root)) << bytes << " " << root << " " << i;
        }
  });
}

TEST(Group, AllToAllTransposes) {
  on_threads(LeafSplit::one_each(3), [](Group& group) {
    for (const int64_t piece : {1, 1000, 40000, 200001})
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

TEST(Group, StartedCollectivesRunInOrderAndMayBeWaitedForInAny) {
  on_threads(LeafSplit::search(4, 4), [](Group& group) {
    constexpr int kBuckets = 6;
    constexpr int64_t kCount = 20000;
    std::vector<Partials<float>> buckets;
    std::vector<Group::Ticket> tickets;
    for (int i = 0; i < kBuckets; ++i) buckets.emplace_back(group, kCount, i % 2 == 0);
    for (Partials<float>& bucket : buckets)
      tickets.push_back(group.start_all_reduce({SumType::kF32, kCount, bucket.pointers}));
    check_all_reduce<int64_t>(group, SumType::kI64, 3, false);  // waits its turn
    for (int i = kBuckets - 1; i >= 0; --i) {
      group.wait(tickets[static_cast<size_t>(i)]);
      EXPECT_TRUE(group.is_done(tickets[static_cast<size_t>(i)]));
      EXPECT_TRUE(same_bits(buckets[static_cast<size_t>(i)].result(), expected_root<float>(4, kCount)));
    }
  });
}

TEST(Group, MessagesCross) {
  on_threads(LeafSplit::one_each(3), [](Group& group) {
    const int next = (group.rank() + 1) % 3;
    const int previous = (group.rank() + 2) % 3;
    for (const size_t bytes : {1U, 70000U, 300001U})
      for (const bool shared : {false, true}) {
        SharedBuffer buffer = group.allocate(static_cast<int64_t>(bytes));
        std::vector<std::byte> own(bytes);
        std::vector<std::byte> first(bytes);
        std::vector<std::byte> second(bytes);
        std::span<std::byte> data(shared ? buffer.data() : own.data(), bytes);
        for (size_t i = 0; i < bytes; ++i)
          data[i] = static_cast<std::byte>(i * 7 + static_cast<size_t>(group.rank()));
        // Everybody sends first: nobody may block the others.
        const auto sent = group.start_send(next, data);
        const auto sent_again = group.start_send(next, data);
        group.receive(previous, first);
        group.receive(previous, second);
        group.wait(sent_again);
        group.wait(sent);
        for (size_t i = 0; i < bytes; ++i)
          ASSERT_EQ(first[i], static_cast<std::byte>(i * 7 + static_cast<size_t>(previous)));
        EXPECT_EQ(first, second);
      }
  });
}

TEST(Group, DifferentCallsAreFoundOut) {
  testing::run_threads(LeafSplit::one_each(2), [](Group& group) {
    std::vector<float> data(100);
    void* const pointer = data.data();
    const int64_t count = group.rank() == 0 ? 100 : 90;
    const std::string text = testing::peer_error(group.rank() == 0 ? 1 : 0, [&] {
      group.all_reduce({SumType::kF32, count, {&pointer, 1}});
      group.barrier();
    });
    EXPECT_NE(text.find("not in the same operation"), std::string::npos) << text;
    EXPECT_NE(text.find("of 90 f32"), std::string::npos) << text;
    // The group is broken from now on, and says the same again.
    EXPECT_THROW(group.barrier(), PeerError);
  });
}

TEST(Group, WaitForSomeoneWhoHasLeftEnds) {
  const auto errors = testing::run_threads(LeafSplit::one_each(2), [](Group& group) {
    group.barrier("together");
    if (group.rank() == 1) return;
    const std::string text = testing::peer_error(1, [&] { group.barrier("alone"); });
    EXPECT_EQ(
        text.find(
            "barrier #2 (alone, 0 B): rank 1 has left the group; before that, rank 1 finished barrier #1"),
        0)
        << text;
  });
  testing::expect_no_errors(errors);
}

TEST(Group, DeadlineNamesTheOneEverybodyWaitsFor) {
  std::latch given_up(2);
  const auto body = [&](Group& group) {
    group.barrier();
    if (group.rank() == 2) {
      given_up.wait();
      return;
    }
    std::vector<float> data(10);
    void* const pointer = data.data();
    Reduction reduction{SumType::kF32, 10, {&pointer, 1}};
    reduction.label = "bucket 3";
    const std::string text = testing::peer_error(2, [&] { group.all_reduce(reduction); });
    EXPECT_NE(text.find("all_reduce #2 (bucket 3, 40 B)"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 2 finished barrier #1"), std::string::npos) << text;
    given_up.count_down();
  };
  testing::expect_no_errors(testing::run_threads(LeafSplit::one_each(3), body, testing::test_options(300)));
}

TEST(Group, StallIsReportedBeforeTheDeadline) {
  shm::ShmOptions options = testing::test_options(1000);
  options.limits.stall = std::chrono::milliseconds(50);
  std::latch given_up(1);
  ::testing::internal::CaptureStderr();
  testing::run_threads(
      LeafSplit::one_each(2),
      [&](Group& group) {
        group.barrier();
        if (group.rank() == 1) return given_up.wait();
        EXPECT_THROW(group.barrier("commit"), PeerError);
        given_up.count_down();
      },
      options);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("in barrier #2 (commit, 0 B) for rank 1: rank 1 finished barrier #1"), std::string::npos)
      << log;
}

TEST(Group, FailureOfStartedOperationComesWithItsTicket) {
  testing::run_threads(LeafSplit::one_each(2), [](Group& group) {
    if (group.rank() == 1) return;
    std::vector<std::byte> data(10);
    const auto first = group.start_broadcast(data, 0);
    const auto second = group.start_broadcast(data, 1);
    EXPECT_THROW(group.wait(first), PeerError);
    EXPECT_THROW(group.wait(second), PeerError);
  });
}

TEST(Group, LeavingWithOperationsUnderWayTellsThePeers) {
  testing::run_threads(LeafSplit::one_each(3), [](Group& group) {
    std::vector<std::byte> data(10);
    group.barrier();
    if (group.rank() == 1) {
      group.start_broadcast(data, 0);
      return;  // rank 2 does not take part, so this cannot be over
    }
    if (group.rank() == 2) {
      const std::string text = testing::peer_error(1, [&] {
        group.receive(1, data);
        group.barrier();
      });
      EXPECT_NE(text.find("rank 1 left with 1 operations under way"), std::string::npos) << text;
    }
  });
}

TEST(Group, MemoryThatIsNotThereIsRefused) {
  const int64_t machine = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  shm::ShmOptions options = testing::test_options();
  options.arena_bytes = 3 * machine;
  const auto errors = testing::run_threads(
      LeafSplit::one_each(1),
      [&](Group& group) {
        try {
          group.allocate(2 * machine);
          FAIL();
        } catch (const UserError& error) {
          const std::string expected = "no room for " + bytes_text(2 * machine) + " of shared memory: ";
          EXPECT_EQ(std::string(error.what()).find(expected), 0) << error.what();
        }
      },
      options);
  testing::expect_no_errors(errors);
}

TEST(Group, MemoryOfAHostIsOneForAllItsRanks) {
  on_threads(LeafSplit::one_each(3), [](Group& group) {
    const HostBuffer buffer = group.allocate_for_host(3 * sizeof(int));
    EXPECT_EQ(group.host()->index, group.rank());
    EXPECT_EQ(group.host()->count, 3);
    int* const numbers = reinterpret_cast<int*>(buffer.data());
    numbers[group.rank()] = group.rank() + 1;
    group.host_barrier();
    EXPECT_EQ(std::vector<int>(numbers, numbers + 3), std::vector<int>({1, 2, 3}));
  });
}

TEST(Group, MemoryOfAHostThatIsNotThereIsRefusedByAllRanks) {
  on_threads(LeafSplit::one_each(3), [](Group& group) {
    EXPECT_THROW(group.allocate_for_host(int64_t{1} << 40), DoesNotFit);
    group.barrier();
  });
}

TEST(Group, ReleasedMemoryIsUsedAgain) {
  on_threads(LeafSplit::one_each(1), [](Group& group) {
    for (int i = 0; i < 10; ++i) {
      std::vector<SharedBuffer> buffers;
      for (int j = 0; j < 4; ++j) buffers.push_back(group.allocate(10 << 20));
      buffers[0].data()[0] = std::byte{1};
    }
    EXPECT_EQ(group.allocate(64 << 20).data()[0], std::byte{0});
  });
}

}  // namespace
}  // namespace lockstep
