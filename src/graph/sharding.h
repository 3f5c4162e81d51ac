// How an op may be split over one axis of a device mesh: a placement for every operand and result.
//
// An op lists its legal signatures; the shard pass picks one per mesh axis and inserts the collectives that
// convert between placements. Example, matmul: S0,R->S0 (data parallel); R,S1->S1 (column parallel); S1,S0->P
// (row parallel).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct Placement {
  enum class Kind : uint8_t { kReplicate, kSplit, kPartial };
  Kind kind = Kind::kReplicate;
  int axis = 0;  // of the tensor, when split

  static Placement replicate() { return {}; }
  static Placement split(int axis) { return {Kind::kSplit, axis}; }
  static Placement partial() { return {Kind::kPartial, 0}; }
  bool operator==(const Placement&) const = default;
};

struct ShardingSignature {
  std::vector<Placement> inputs;
  std::vector<Placement> outputs;
  bool operator==(const ShardingSignature&) const = default;
};

std::string to_string(const ShardingSignature& signature);  // "S0,R->S0"

}  // namespace lockstep
