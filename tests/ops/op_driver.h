// What is checked of every op case, on any backend.
#pragma once
#include <string>
#include <vector>

#include "backend/backend.h"
#include "ops/op_case.h"
#include "passes/pipeline.h"

namespace lockstep::testing {

// The results of a graph on a backend, with every pass on or only those needed.
std::vector<RefTensor> run_on_backend(const Graph& graph, const RefTensors& inputs, Backend& backend,
                                      const PassOptions& options);
// The graph of a case, or with `differentiate` its gradient: outputs are turned into one loss by fixed
// weights.
Graph case_graph(const OpCase& op_case, bool differentiated);
// Raw output bytes, for bitwise comparison.
std::vector<std::string> run_for_bytes(const Graph& graph, const RefTensors& inputs, Backend& backend,
                                       const PassOptions& options);
// Checks reverse-mode gradients against central differences in fp64; empty when they agree.
std::string check_finite_differences(const OpCase& op_case);
// The graph with every node replaced by what its op decomposes into, again and again until none does.
Graph decomposed(const Graph& graph);
double tolerance_for(const OpCase& op_case, const std::string& dtype);

}  // namespace lockstep::testing
