#include "ops/shard_rows.h"

namespace lockstep {
namespace {

std::vector<Placement> place(std::string_view parts, int axis) {
  std::vector<Placement> placements;
  for (const char part : parts) {
    if (axis < 0 || part == 'w')
      placements.push_back(Placement::replicate());
    else
      placements.push_back(part == 'r' ? Placement::split(axis) : Placement::partial());
  }
  return placements;
}

}  // namespace

std::vector<ShardingSignature> shard_rows(int axes, std::string_view inputs, std::string_view outputs) {
  std::vector<ShardingSignature> signatures;
  for (int axis = -1; axis < axes; ++axis) signatures.push_back({place(inputs, axis), place(outputs, axis)});
  return signatures;
}

}  // namespace lockstep
