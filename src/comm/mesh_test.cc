// A mesh of ranks: who is on which line, groups that work beside each other, and a rank that dies.
#include "comm/mesh.h"

#include <set>

#include "comm/mesh_testing.h"
#include "comm/tree_testing.h"

namespace lockstep {
namespace {

using testing::Child;

constexpr MeshShape kCube = {.data = 2, .pipeline = 2, .tensor = 2};

TEST(Mesh, TensorIsFastestThenDataThenPipeline) {
  EXPECT_EQ(kCube.line(MeshAxis::kTensor, 5), (RankLine{4, 1, 2}));
  EXPECT_EQ(kCube.line(MeshAxis::kData, 5), (RankLine{5, 2, 2}));
  EXPECT_EQ(kCube.line(MeshAxis::kPipeline, 5), (RankLine{1, 4, 2}));
  EXPECT_EQ(kCube.coordinate(MeshAxis::kTensor, 6), 0);
  EXPECT_EQ(kCube.coordinate(MeshAxis::kData, 6), 1);
  EXPECT_EQ(kCube.coordinate(MeshAxis::kPipeline, 6), 1);
}

TEST(Mesh, TheLinesOfAnAxisHaveEveryRankOnce) {
  const MeshShape shape{.data = 3, .pipeline = 2, .tensor = 4};
  for (const MeshAxis axis : kMeshAxes) {
    std::set<std::pair<int, int>> seen;  // first rank and index of a line
    for (int rank = 0; rank < shape.ranks(); ++rank) {
      const RankLine line = shape.line(axis, rank);
      const int index = shape.coordinate(axis, rank);
      EXPECT_EQ(line.number(index), rank);
      EXPECT_EQ(line.index(rank), index);
      EXPECT_TRUE(seen.insert({line.first, index}).second);
    }
    EXPECT_EQ(static_cast<int>(seen.size()), shape.ranks());
  }
}

TEST(Mesh, ALineKnowsWhoIsNotOnIt) {
  const RankLine line{1, 4, 2};
  EXPECT_EQ(line.index(5), 1);
  for (const int number : {0, 3, 9, -3}) EXPECT_EQ(line.index(number), -1) << number;
}

TEST(Mesh, DataParallelRanksAreOneGroup) {
  const MeshShape shape{.data = 3};
  testing::on_mesh_threads(shape, [](Mesh& mesh) {
    EXPECT_EQ(mesh.group(MeshAxis::kTensor), nullptr);
    EXPECT_EQ(mesh.group(MeshAxis::kPipeline), nullptr);
    Group& data = *mesh.group(MeshAxis::kData);
    EXPECT_EQ(data.rank(), mesh.rank());
    EXPECT_EQ(data.size(), 3);
  });
}

// The sum over a line of values that name rank, axis and round.
float value(MeshAxis axis, int rank, int round) {
  return testing::leaf_value<float>(rank, 100 * round + static_cast<int>(axis));
}

float line_sum(const RankLine& line, MeshAxis axis, int round) {
  return testing::tree_root<float>(
      line.count, [&](int64_t index) { return value(axis, line.number(static_cast<int>(index)), round); });
}

// Ranks start the sums of their three groups in different orders, and wait in yet another.
TEST(Mesh, GroupsOfTheAxesRunBesideEachOther) {
  testing::on_mesh_threads(kCube, [](Mesh& mesh) {
    constexpr int kRounds = 20;
    constexpr int64_t kCount = 3000;
    std::array<std::vector<SharedBuffer>, 3> buffers;
    std::array<std::vector<Group::Ticket>, 3> tickets;
    for (int turn = 0; turn < 3; ++turn) {
      const MeshAxis axis = kMeshAxes[static_cast<size_t>((mesh.rank() + turn) % 3)];
      Group& group = *mesh.group(axis);
      for (int round = 0; round < kRounds; ++round) {
        SharedBuffer buffer = group.allocate(kCount * 4);
        std::fill_n(buffer.as<float>(), kCount, value(axis, mesh.rank(), round));
        const std::array<void*, 1> partials = {buffer.data()};
        tickets[static_cast<size_t>(axis)].push_back(
            group.start_all_reduce({.count = kCount, .partials = partials}));
        buffers[static_cast<size_t>(axis)].push_back(std::move(buffer));
      }
    }
    for (const MeshAxis axis : kMeshAxes)
      for (int round = 0; round < kRounds; ++round) {
        mesh.group(axis)->wait(tickets[static_cast<size_t>(axis)][static_cast<size_t>(round)]);
        const float* sum = buffers[static_cast<size_t>(axis)][static_cast<size_t>(round)].as<float>();
        const float want = line_sum(mesh.shape().line(axis, mesh.rank()), axis, round);
        EXPECT_EQ(sum[0], want);
        EXPECT_EQ(sum[kCount - 1], want);
      }
  });
}

// A circle: stage 0 has left a second message to stage 1 behind the first and waits for its tensor peer, who
// waits for a message of the other rank of stage 1, who waits for its own tensor peer, who waits for the
// second message.
TEST(Mesh, MessagesMoveWhileARankWaitsInAnotherGroup) {
  const MeshShape shape{.data = 1, .pipeline = 2, .tensor = 2};
  testing::on_mesh_threads(shape, [](Mesh& mesh) {
    Group& stages = *mesh.group(MeshAxis::kPipeline);
    Group& tensor = *mesh.group(MeshAxis::kTensor);
    const bool first_stage = mesh.coordinate(MeshAxis::kPipeline) == 0;
    const bool first_tensor = mesh.coordinate(MeshAxis::kTensor) == 0;
    const int peer = first_stage ? 1 : 0;
    std::array<std::array<std::byte, 64>, 2> messages = {};
    messages[1][0] = std::byte{7};
    if (first_stage && first_tensor) {
      const Group::Ticket one = stages.start_send(peer, messages[0]);
      const Group::Ticket two = stages.start_send(peer, messages[1]);
      tensor.barrier("layer");
      stages.wait(one);
      stages.wait(two);
    } else if (first_stage) {
      stages.receive(peer, messages[0]);
      tensor.barrier("layer");
    } else if (first_tensor) {
      std::array<std::array<std::byte, 64>, 2> taken = {};
      stages.receive(peer, taken[0]);
      stages.receive(peer, taken[1]);
      EXPECT_EQ(taken[1][0], std::byte{7});
      tensor.barrier("layer");
    } else {
      tensor.barrier("layer");
      stages.send(peer, messages[0]);
    }
  });
}

// Rank 5 is killed: its lines say so by that name; the others work on.
TEST(Mesh, ADeadRankIsNamedByItsNumberInTheMesh) {
  constexpr int kDead = 5;
  const std::string name = shm::random_meeting_name();
  std::vector<Child> children;
  for (int rank = 0; rank < kCube.ranks(); ++rank)
    children.push_back(testing::fork_mesh_rank(name, rank, kCube, [](Mesh& mesh) {
      for (const MeshAxis axis : kMeshAxes) mesh.group(axis)->barrier("all here");
      if (mesh.rank() == kDead) raise(SIGKILL);
      for (const MeshAxis axis : kMeshAxes) {
        Group& group = *mesh.group(axis);
        const bool bereft = mesh.shape().line(axis, mesh.rank()).index(kDead) >= 0;
        if (!bereft) {
          group.barrier("step");
          continue;
        }
        const std::string text = testing::peer_error(kDead, [&] { group.barrier("step"); });
        EXPECT_NE(text.find(fmt::format("barrier #2 ({}: step", name_of(axis))), std::string::npos) << text;
        EXPECT_NE(text.find("rank 5 (pid "), std::string::npos) << text;
      }
      return ::testing::Test::HasFailure() ? 1 : 0;
    }));
  for (int rank = 0; rank < kCube.ranks(); ++rank)
    EXPECT_EQ(children[static_cast<size_t>(rank)].wait(), rank == kDead ? -SIGKILL : 0) << "rank " << rank;
}

TEST(Mesh, DifferentCallsAreNamedByNumberToo) {
  testing::on_mesh_threads({.data = 2, .pipeline = 1, .tensor = 2}, [](Mesh& mesh) {
    Group& data = *mesh.group(MeshAxis::kData);
    if (mesh.coordinate(MeshAxis::kTensor) == 0) return data.barrier("step");
    std::array<std::byte, 8> bytes{};
    try {
      if (mesh.rank() == 1)
        data.barrier("step");
      else
        data.broadcast(bytes, 0, "table");
      ADD_FAILURE() << "no error";
    } catch (const PeerError& error) {
      const std::string text = error.what();
      EXPECT_TRUE(error.peer() == 1 || error.peer() == 3) << error.peer();
      for (const int rank : {1, 3})
        EXPECT_NE(text.find(fmt::format("rank {} runs", rank)), std::string::npos) << text;
    }
  });
}

}  // namespace
}  // namespace lockstep
