// Collectives of a graph, run on the CPU by ranks that are threads: every element against what the op says.
#include "runtime/collective_steps.h"

#include <gtest/gtest.h>

#include "comm/ranks_testing.h"
#include "comm/tree_testing.h"
#include "graph/text.h"
#include "ops/registry.h"
#include "runtime/compile.h"

namespace lockstep {
namespace {

PassOptions no_autodiff() {
  PassOptions options;
  options.disabled = {"autodiff"};
  return options;
}

template <typename T>
using PerRank = std::vector<std::vector<T>>;

// Rank r binds inputs[r] to x; what it gets as the first output.
template <typename T>
PerRank<T> run_on_ranks(const std::string& text, const PerRank<T>& inputs) {
  const Graph graph = parse_graph(text, all_ops());
  PerRank<T> results(inputs.size());
  testing::on_threads(LeafSplit::one_each(static_cast<int>(inputs.size())), [&](Group& group) {
    const auto backend = make_cpu_backend(1);
    const auto executable = compile(graph, *backend, no_autodiff());
    std::vector<T> x = inputs[static_cast<size_t>(group.rank())];
    executable->bind("x", x.data());
    executable->bind_group("tensor", group);
    executable->run();
    executable->run();  // a second one gives the same
    const int64_t count = graph.type(graph.outputs()[0].value).shape.numel();
    const auto* result = static_cast<const T*>(executable->output(0));
    results[static_cast<size_t>(group.rank())].assign(result, result + count);
  });
  return results;
}

template <typename T>
std::vector<T> numbers(int64_t count, int rank) {
  std::vector<T> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(static_cast<T>(1000 * (rank + 1) + i));
  return result;
}

std::vector<float> floats(int64_t count, int rank) {
  std::vector<float> result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(1.0F / static_cast<float>(1 + i * 7 + rank * 13) * (i % 3 == 0 ? -1.0F : 1.0F));
  return result;
}

template <typename T, typename Make>
PerRank<T> for_ranks(int ranks, const Make& make) {
  PerRank<T> result;
  for (int rank = 0; rank < ranks; ++rank) result.push_back(make(rank));
  return result;
}

// The tree over the ranks, each of them a leaf.
float tree_sum(const PerRank<float>& terms, size_t element) {
  return testing::tree_root<float>(static_cast<int64_t>(terms.size()),
                                   [&](int64_t rank) { return terms[static_cast<size_t>(rank)][element]; });
}

TEST(CollectiveSteps, AllReduceSumsByTheTreeOverTheRanks) {
  for (const int ranks : {1, 2, 3, 5}) {
    const auto inputs = for_ranks<float>(ranks, [](int rank) { return floats(3000, rank); });
    const auto results = run_on_ranks(
        fmt::format(
            "graph f(x: f32[3000]) {{\n y = all_reduce(x) {{group=\"tensor\", size={}}}\n return y\n}}",
            ranks),
        inputs);
    for (const auto& result : results)
      for (size_t i = 0; i < result.size(); ++i) ASSERT_EQ(result[i], tree_sum(inputs, i)) << ranks;
  }
}

TEST(CollectiveSteps, SixteenBitSumsAreRoundedOnce) {
  const auto inputs = for_ranks<uint16_t>(3, [](int rank) {
    std::vector<uint16_t> bits;
    for (const float value : floats(100, rank)) bits.push_back(to_bf16(value));
    return bits;
  });
  const auto results = run_on_ranks<uint16_t>(R"(graph f(x: bf16[100]) {
    y = all_reduce(x) {group="tensor", size=3}
    return y
  })",
                                              inputs);
  for (const auto& result : results)
    for (size_t i = 0; i < result.size(); ++i) {
      const float sum = (from_bf16(inputs[0][i]) + from_bf16(inputs[1][i])) + from_bf16(inputs[2][i]);
      ASSERT_EQ(result[i], to_bf16(sum));
    }
}

TEST(CollectiveSteps, CountsAreSummedAsIntegers) {
  const auto results = run_on_ranks<int32_t>(R"(graph f(x: i32[3]) {
    y = all_reduce(x) {group="tensor", size=2}
    return y
  })",
                                             {{1, -2, 16777217}, {5, 7, 2}});
  for (const auto& result : results) EXPECT_EQ(result, (std::vector<int32_t>{6, 5, 16777219}));
}

TEST(CollectiveSteps, ReduceScatterKeepsAShardAlongItsAxis) {
  const auto inputs = for_ranks<float>(3, [](int rank) { return floats(int64_t{4} * 6, rank); });
  const auto results = run_on_ranks<float>(R"(graph f(x: f32[4,6]) {
    y = reduce_scatter(x) {group="tensor", size=3, axis=1}
    return y
  })",
                                           inputs);
  for (size_t rank = 0; rank < 3; ++rank)
    for (size_t row = 0; row < 4; ++row)
      for (size_t column = 0; column < 2; ++column)
        EXPECT_EQ(results[rank][row * 2 + column], tree_sum(inputs, row * 6 + rank * 2 + column));
}

TEST(CollectiveSteps, AllGatherJoinsAlongItsAxis) {
  const auto inputs = for_ranks<int64_t>(2, [](int rank) { return numbers<int64_t>(6, rank); });
  const auto rows = run_on_ranks<int64_t>(
      "graph f(x: i64[3,2]) {\n y = all_gather(x) {group=\"tensor\", size=2}\n return y\n}", inputs);
  const auto columns = run_on_ranks<int64_t>(
      "graph f(x: i64[3,2]) {\n y = all_gather(x) {group=\"tensor\", size=2, axis=-1}\n return y\n}", inputs);
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(rows[rank], (std::vector<int64_t>{1000, 1001, 1002, 1003, 1004, 1005,  //
                                                2000, 2001, 2002, 2003, 2004, 2005}));
    EXPECT_EQ(columns[rank], (std::vector<int64_t>{1000, 1001, 2000, 2001, 1002, 1003,  //
                                                   2002, 2003, 1004, 1005, 2004, 2005}));
  }
}

TEST(CollectiveSteps, AllToAllMovesTheSplitFromOneAxisToAnother) {
  const auto inputs = for_ranks<int64_t>(2, [](int rank) { return numbers<int64_t>(8, rank); });
  const auto results = run_on_ranks<int64_t>(R"(graph f(x: i64[2,4]) {
    y = all_to_all(x) {group="tensor", size=2, split_axis=1, concat_axis=0}
    return y
  })",
                                             inputs);
  EXPECT_EQ(results[0], (std::vector<int64_t>{1000, 1001, 1004, 1005, 2000, 2001, 2004, 2005}));
  EXPECT_EQ(results[1], (std::vector<int64_t>{1002, 1003, 1006, 1007, 2002, 2003, 2006, 2007}));
}

TEST(CollectiveSteps, BroadcastAndReduceHaveARoot) {
  const auto inputs = for_ranks<float>(3, [](int rank) { return floats(40, rank); });
  const auto broadcast = run_on_ranks<float>(
      "graph f(x: f32[40]) {\n y = broadcast_from(x) {group=\"tensor\", size=3, root=1}\n return y\n}",
      inputs);
  const auto reduced = run_on_ranks<float>(
      "graph f(x: f32[40]) {\n y = reduce_to(x) {group=\"tensor\", size=3, root=2}\n return y\n}", inputs);
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(broadcast[rank], inputs[1]);
    for (size_t i = 0; i < 40; ++i) EXPECT_EQ(reduced[rank][i], rank == 2 ? tree_sum(inputs, i) : 0.0F);
  }
}

TEST(CollectiveSteps, ASendMeetsTheReceiveOfItsPeer) {
  std::vector<float> received(8);
  testing::on_threads(LeafSplit::one_each(2), [&](Group& group) {
    const auto backend = make_cpu_backend(1);
    const Graph graph = parse_graph(group.rank() == 0 ? R"(graph f(x: f32[8]) {
        t = send(x) {group="pipeline", size=2, peer=1}
        return x
      })"
                                                      : R"(graph f(x: f32[8]) {
        y = recv() {group="pipeline", size=2, peer=0, shape=[8]}
        z = add(x, y)
        return z
      })",
                                    all_ops());
    const auto executable = compile(graph, *backend, no_autodiff());
    std::vector<float> x(8, group.rank() == 0 ? 3.0F : 4.0F);
    executable->bind("x", x.data());
    executable->bind_group("pipeline", group);
    executable->run();
    if (group.rank() == 1) std::copy_n(static_cast<const float*>(executable->output(0)), 8, received.begin());
  });
  EXPECT_EQ(received, std::vector<float>(8, 7.0F));
}

// The first transfer is under way while exp runs and the second one begins.
TEST(CollectiveSteps, ComputeGoesOnBesideTransfers) {
  const auto inputs = for_ranks<float>(2, [](int rank) { return floats(64, rank); });
  const auto results = run_on_ranks<float>(R"(graph f(x: f32[64]) {
    a = all_reduce(x) {group="tensor", size=2}
    b = all_gather(x) {group="tensor", size=2}
    c = exp(x)
    d = slice(b) {axis=0, begin=0, end=64}
    e = add(a, d)
    g = sub(e, c)
    h = add(g, c)
    return h
  })",
                                           inputs);
  for (const size_t rank : {0U, 1U})
    for (size_t i = 0; i < 64; ++i) {
      const float e = (inputs[0][i] + inputs[1][i]) + inputs[0][i];
      EXPECT_NEAR(results[rank][i], e, 1e-5F);
    }
}

TEST(CollectiveSteps, AGroupOfAnotherSizeOrSplitIsRefused) {
  const Graph graph = parse_graph(
      "graph f(x: f32[8]) {\n y = all_reduce(x) {group=\"data\", size=2}\n return y\n}", all_ops());
  const auto expect_refused = [&](const LeafSplit& split, const std::string& part) {
    testing::on_threads(split, [&](Group& group) {
      const auto backend = make_cpu_backend(1);
      const auto executable = compile(graph, *backend, no_autodiff());
      try {
        executable->bind_group("data", group);
        ADD_FAILURE() << "no error";
      } catch (const InternalError& error) {
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      }
    });
  };
  expect_refused(LeafSplit::one_each(3), "y is for 2 ranks, group data has 3");
  expect_refused(LeafSplit::search(4, 2), "y sums one leaf per rank");
}

}  // namespace
}  // namespace lockstep
