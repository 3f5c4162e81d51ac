// The reference: runs a graph node by node in fp64, by each op's obvious implementation. Every backend and
// every pass is tested against it.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "graph/ref_tensor.h"

namespace lockstep {

struct InterpretOptions {
  // Round every result to its dtype, as a backend that stores it would; off for finite differences.
  bool round = false;
};

using RefTensors = std::unordered_map<std::string, RefTensor>;

// Returns one tensor per graph output, in order. Throws UserError when an input is missing or has another
// type.
std::vector<RefTensor> interpret(const Graph& graph, const RefTensors& inputs, InterpretOptions options = {});

}  // namespace lockstep
