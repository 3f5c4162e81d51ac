// Groups whose ranks are processes joined by UCX on loopback: the collectives against their definitions, and
// what is said when one strays, stops or leaves.
#include "comm/tree_testing.h"
#include "comm/ucx/ranks_testing.h"

namespace lockstep {
namespace {

using testing::on_ucx_groups;
using testing::peer_error;

template <typename T>
struct Partials {
  Partials(const Group& group, int64_t count)
      : sums(testing::partial_sums<T>(group.split(), group.rank(), count)) {
    for (auto& sum : sums) pointers.push_back(sum.data());
  }
  const T* result() const { return sums[0].data(); }
  std::vector<std::vector<T>> sums;
  std::vector<void*> pointers;
};

template <typename T>
void check_all_reduce(Group& group, SumType type, int64_t count) {
  Partials<T> partials(group, count);
  group.all_reduce({type, count, partials.pointers});
  EXPECT_TRUE(testing::same_bits(partials.result(), testing::expected_root<T>(group.split().leaves(), count)))
      << group.split().text() << ", " << count << " elements, " << name_of(type);
}

TEST(UcxGroup, AllReduceGivesTheBitsOfOneRank) {
  for (const int ranks : {1, 2, 3, 5})
    on_ucx_groups(LeafSplit::search(16, ranks), [](Group& group) {
      for (const int64_t count : {1, 1500, 9000, 70001, 300007})
        check_all_reduce<float>(group, SumType::kF32, count);
      check_all_reduce<int64_t>(group, SumType::kI64, 9000);
    });
}

TEST(UcxGroup, ReduceScatterThenGatherIsAllReduce) {
  on_ucx_groups(LeafSplit::search(8, 3), [](Group& group) {
    for (const int64_t count : {5, 4096, 70001}) {
      Partials<float> partials(group, count);
      group.reduce_scatter({SumType::kF32, count, partials.pointers});
      group.all_gather({partials.pointers[0], count, 4});
      EXPECT_TRUE(testing::same_bits(partials.result(), testing::expected_root<float>(8, count)));
    }
  });
}

TEST(UcxGroup, BroadcastFromAnyRoot) {
  on_ucx_groups(LeafSplit::one_each(3), [](Group& group) {
    for (const size_t bytes : {size_t{1}, size_t{3000}, size_t{1'200'001}})
      for (int root = 0; root < group.size(); ++root) {
        std::vector<std::byte> expected(bytes);
        for (size_t i = 0; i < bytes; ++i)
          expected[i] = static_cast<std::byte>(i * 31 + static_cast<size_t>(root));
        std::vector<std::byte> data = group.rank() == root ? expected : std::vector<std::byte>(bytes);
        group.broadcast(data, root);
        EXPECT_EQ(data, expected) << bytes << " bytes from rank " << root;
      }
  });
}

TEST(UcxGroup, AllToAllTransposes) {
  on_ucx_groups(LeafSplit::one_each(3), [](Group& group) {
    for (const size_t piece : {1U, 1000U, 200001U}) {
      std::vector<std::byte> data(piece * 3);
      std::vector<std::byte> received(piece * 3);
      std::vector<std::byte> expected(piece * 3);
      const auto value = [](size_t from, size_t to, size_t i) {
        return static_cast<std::byte>(from * 64 + to * 16 + i % 13);
      };
      const auto own = static_cast<size_t>(group.rank());
      for (size_t other = 0; other < 3; ++other)
        for (size_t i = 0; i < piece; ++i) {
          data[other * piece + i] = value(own, other, i);
          expected[other * piece + i] = value(other, own, i);
        }
      group.all_to_all(data, received);
      EXPECT_EQ(received, expected);
    }
  });
}

TEST(UcxGroup, MessagesOfTheCallerGoOnBesideStartedCollectives) {
  on_ucx_groups(LeafSplit::search(4, 2), [](Group& group) {
    constexpr int64_t kCount = 200'000;
    std::vector<Partials<float>> buckets;
    std::vector<Group::Ticket> tickets;
    for (int i = 0; i < 4; ++i) buckets.emplace_back(group, kCount);
    for (Partials<float>& bucket : buckets)
      tickets.push_back(group.start_all_reduce({SumType::kF32, kCount, bucket.pointers}));
    std::vector<std::byte> out(70'000, static_cast<std::byte>(group.rank()));
    std::vector<std::byte> in(out.size());
    for (int turn = 0; turn < 20; ++turn) {
      const auto sent = group.start_send(1 - group.rank(), out);
      group.receive(1 - group.rank(), in);
      group.wait(sent);
      EXPECT_EQ(in, std::vector<std::byte>(out.size(), static_cast<std::byte>(1 - group.rank())));
    }
    for (const Group::Ticket& ticket : tickets) group.wait(ticket);
    for (const Partials<float>& bucket : buckets)
      EXPECT_TRUE(testing::same_bits(bucket.result(), testing::expected_root<float>(4, kCount)));
  });
}

TEST(UcxGroup, DifferentCallsAreFoundOut) {
  for (const int64_t count : {100, 100'000})
    on_ucx_groups(LeafSplit::one_each(2), [&](Group& group) {
      std::vector<float> data(static_cast<size_t>(count));
      void* const pointer = data.data();
      const std::string text = peer_error(1 - group.rank(), [&] {
        group.all_reduce({SumType::kF32, group.rank() == 0 ? count : count - 10, {&pointer, 1}});
        group.barrier();
      });
      EXPECT_NE(text.find("not in the same operation"), std::string::npos) << text;
      EXPECT_NE(text.find(fmt::format("of {} f32", count - 10)), std::string::npos) << text;
      // The group is broken from now on, and says the same again.
      EXPECT_THROW(group.barrier(), PeerError);
    });
}

// Rank 2 does `ending` after the first barrier. The others must name it, and say `expected`; what rank 0 logs
// meanwhile must contain `logged`.
void expect_culprit(const std::function<void(Group&)>& ending, const std::string& expected,
                    const std::string& logged, const ucx::UcxOptions& options) {
  const LeafSplit split = LeafSplit::one_each(3);
  ucx::LocalExchange exchange(3);
  const auto start = [&](int rank, const testing::Body& body) {
    return testing::fork_and_run(rank, [&exchange, &split, &options, rank, body] {
      Group group(ucx::join(rank, 3, exchange.of(rank), options), split);
      body(group);
    });
  };
  const auto witness = [&](Group& group) {
    ::testing::internal::CaptureStderr();
    std::vector<float> data(10);
    void* const pointer = data.data();
    Reduction reduction{SumType::kF32, 10, {&pointer, 1}};
    reduction.label = "bucket 3";
    const std::string text = peer_error(2, [&] {
      group.barrier("first");
      group.all_reduce(reduction);
    });
    EXPECT_NE(text.find(expected), std::string::npos) << text;
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(group.rank() != 0 || log.find(logged) != std::string::npos) << log;
  };
  const testing::Child culprit = start(2, [&](Group& group) {
    group.barrier("first");
    ending(group);
  });
  const testing::Child first = start(0, witness);
  const testing::Child second = start(1, witness);
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
  kill(culprit.pid, SIGKILL);
  culprit.wait();
}

TEST(UcxGroup, StoppedPeerIsReportedAndNamedAtTheDeadline) {
  ucx::UcxOptions options = testing::ucx_options(600);
  options.limits.stall = std::chrono::milliseconds(200);
  expect_culprit([](Group&) { raise(SIGSTOP); }, "rank 2 finished barrier #1 (first, 0 B)",
                 "in all_reduce #2 (bucket 3, 40 B) for rank 2: rank 2 finished barrier #1", options);
}

TEST(UcxGroup, PeerThatLeftIsNamedWithWhatItLastDid) {
  expect_culprit([](Group&) {},
                 "rank 2 has left the group; before that, rank 2 finished barrier #1 (first, 0 B)", "",
                 testing::ucx_options());
}

TEST(UcxGroup, LeavingWithOperationsUnderWayTellsThePeers) {
  expect_culprit(
      [](Group& group) {
        std::vector<std::byte> data(10);
        group.start_broadcast(data, 0, "too early");
      },
      "rank 2", "", testing::ucx_options());
}

}  // namespace
}  // namespace lockstep
