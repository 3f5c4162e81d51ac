// The transfers of a plan: its collectives, each from its start to its done, with a place in memory that the
// peers can reach.
//
// Every group of ranks has one such buffer. A start packs its operand there, cut into one piece per rank
// where the collective is along an axis; the done unpacks the result. So peers read and write each other's
// memory wherever the plan put the values, and strided pieces are contiguous on the way.
//
// Sums have one leaf per rank (LeafSplit::one_each) and follow the tree over the ranks, on every rank alike:
// f32 as it is, bf16 and f16 as f32 that is rounded once after the root, integers as i64.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "comm/collective.h"
#include "graph/graph.h"

namespace lockstep {

// How a tensor lies in the buffer: `pieces` of it one after another, `stride` elements apart. Each is made of
// `outer` runs of `run` contiguous elements of the tensor.
struct PieceLayout {
  int64_t pieces = 1;
  int64_t outer = 1;
  int64_t run = 0;
  int64_t stride = 0;

  int64_t piece() const { return outer * run; }
};

struct Transfer {
  CollectiveKind kind = CollectiveKind::kNone;
  int32_t start = -1;  // nodes of the graph
  int32_t done = -1;
  bool alone = false;  // nothing is computed between the two
  std::string group;
  int64_t size = 0;  // ranks of the group
  int root = -1;     // who has what is broadcast; the only one to keep the sum, of a reduce_to
  int peer = -1;     // of a send or receive
  std::string label;

  DType dtype = DType::kF32;   // of operand and result
  DType staged = DType::kF32;  // on the way
  PieceLayout operand;
  PieceLayout result;
  int64_t result_at = 0;  // of all_to_all: bytes from the transfer's place to what is received
  int64_t bytes = 0;
  int64_t offset = 0;  // in the group's buffer
};

struct TransferPlan {
  std::vector<Transfer> transfers;
  std::map<std::string, int64_t> buffers;  // bytes per group

  int64_t bytes() const;
};

// Of a graph that has been through split_collectives. Throws UserError where a collective is still whole.
TransferPlan plan_transfers(const Graph& graph, int64_t alignment);

// Between a tensor in host memory and the part of the transfer's place that is this rank's operand or result.
void pack(const Transfer& transfer, const void* tensor, std::byte* operand);
void unpack(const Transfer& transfer, const std::byte* result, void* tensor);

}  // namespace lockstep
