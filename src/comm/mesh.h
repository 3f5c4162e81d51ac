// Ranks have coordinates on three axes, and a group of ranks along each of them.
//
// A rank's number counts the axes from fastest to slowest: tensor, data, pipeline. Tensor ranks exchange most
// and come to lie beside each other on a host; pipeline ranks exchange least and may be far apart:
//
//   pipeline 2, data 2, tensor 2        rank = (pipeline * 2 + data) * 2 + tensor
//     stage 0: 0 1 | 2 3                tensor groups {0,1} {2,3} {4,5} {6,7}
//     stage 1: 4 5 | 6 7                data groups {0,2} {1,3} {4,6} {5,7}, pipeline groups {0,4} {1,5} ...
//
// The ranks along an axis are a line: equally far apart. Every line has a transport of its own, so its group
// has its own order of collectives, its own thread, ledger and deadline, and a failure breaks the groups of
// the rank that failed and no others. Errors name ranks by their number in the mesh, and operations with
// their axis. With data parallelism alone the data group is the group of all ranks.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <string>

#include "comm/group.h"
#include "comm/rank_line.h"

namespace lockstep {

enum class MeshAxis : uint8_t { kTensor, kData, kPipeline };  // fastest first
inline constexpr std::array kMeshAxes = {MeshAxis::kTensor, MeshAxis::kData, MeshAxis::kPipeline};
// "tensor": also what the collectives of a graph call the group.
std::string_view name_of(MeshAxis axis);

struct MeshShape {
  int data = 1;
  int pipeline = 1;
  int tensor = 1;

  int ranks() const { return data * pipeline * tensor; }
  int degree(MeshAxis axis) const;
  // From one rank to the next along an axis.
  int stride(MeshAxis axis) const;
  int coordinate(MeshAxis axis, int rank) const { return rank / stride(axis) % degree(axis); }
  // The ranks that differ from this one along the axis alone, this one included.
  RankLine line(MeshAxis axis, int rank) const;
  // Whether ranks differ in more than the leaves that they sum.
  bool splits_model() const { return pipeline * tensor > 1; }
  std::string text() const;           // "data 2 x pipeline 4"
  std::string place(int rank) const;  // "data 1, pipeline 3"; of the axes that have several ranks
  bool operator==(const MeshShape&) const = default;
};

class Mesh {
 public:
  // Joins this rank with the others of a line. Called for the axes in one order on all ranks, and where an
  // axis has more than one rank.
  using Join = std::function<std::unique_ptr<Transport>(MeshAxis axis, const RankLine& line, int index)>;

  // `data` says which leaves each data rank sums. Along the other axes every rank is one leaf.
  Mesh(const MeshShape& shape, int rank, const LeafSplit& data, const Join& join);

  const MeshShape& shape() const { return shape_; }
  int rank() const { return rank_; }
  int coordinate(MeshAxis axis) const { return shape_.coordinate(axis, rank_); }
  // Null where this rank is alone on the axis.
  Group* group(MeshAxis axis) const { return groups_[static_cast<size_t>(axis)].get(); }

 private:
  MeshShape shape_;
  int rank_;
  std::array<std::unique_ptr<Group>, kMeshAxes.size()> groups_;
};

// The groups of one rank of a run: of all ranks, and along each axis. Null where this rank is alone in it.
struct MeshGroups {
  MeshGroups() = default;
  // Data parallelism alone: the data group is the group of all ranks.
  MeshGroups(Group* ranks) : all(ranks), data(ranks) {
    if (ranks == nullptr) return;
    shape.data = ranks->size();
    rank = ranks->rank();
  }
  MeshGroups(Group& ranks, const Mesh& mesh)
      : all(&ranks),
        data(mesh.group(MeshAxis::kData)),
        pipeline(mesh.group(MeshAxis::kPipeline)),
        tensor(mesh.group(MeshAxis::kTensor)),
        shape(mesh.shape()),
        rank(mesh.rank()) {}

  int coordinate(MeshAxis axis) const { return shape.coordinate(axis, rank); }

  // Who share out state among themselves: the data group, or a part of it.
  Group* owners() const { return part == nullptr ? data : part; }

  Group* all = nullptr;
  Group* data = nullptr;
  Group* pipeline = nullptr;
  Group* tensor = nullptr;
  // Where the data group is in parts of equally many ranks, each of which holds everything (ZeRO in groups):
  // this rank's part, and those who have its place in the others, which sum a range of the leaves each.
  Group* part = nullptr;
  Group* replicas = nullptr;
  bool parts_on_hosts = false;  // the ranks of every part are of one host
  MeshShape shape;
  int rank = 0;
};

}  // namespace lockstep
