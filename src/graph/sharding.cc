#include "graph/sharding.h"

#include <fmt/format.h>

namespace lockstep {
namespace {

std::string list(const std::vector<Placement>& placements) {
  std::string out;
  for (const Placement& placement : placements) {
    if (!out.empty()) out += ",";
    switch (placement.kind) {
      case Placement::Kind::kReplicate: out += "R"; break;
      case Placement::Kind::kSplit: out += fmt::format("S{}", placement.axis); break;
      case Placement::Kind::kPartial: out += "P"; break;
    }
  }
  return out;
}

}  // namespace

std::string to_string(const ShardingSignature& signature) {
  return list(signature.inputs) + "->" + list(signature.outputs);
}

}  // namespace lockstep
