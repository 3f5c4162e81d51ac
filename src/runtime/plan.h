// The plan: a graph made ready for a backend. A list of steps with fixed addresses; nothing is decided or allocated
// while it runs.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "runtime/memory.h"

namespace lockstep {

// Where a value lives: in the arena at an offset, or in the buffer of a graph input.
struct Location {
  int32_t input = -1;  // index of the graph input, or -1 for the arena
  int64_t offset = 0;
};

struct PlanStep {
  int32_t node = -1;  // index in the graph
  std::string kernel;
  std::vector<Refusal> refusals;
  Location workspace;
};

struct MemoryReport {
  int64_t arena_peak = 0;
  int64_t arena_lower_bound = 0;
  int64_t external = 0;  // graph inputs: parameters, gradients, state, data
  std::string order;
  std::array<int64_t, kMemoryCategories> at_peak{};  // bytes alive at the fullest step, by category
  int32_t peak_step = 0;
};

struct PlanCopy {
  Value from;
  Value to;
};

struct Plan {
  Graph graph;
  std::vector<Location> locations;  // per value
  std::vector<PlanStep> steps;
  std::vector<PlanCopy> copies;  // updates that could not be written in place, done after the last step
  MemoryReport memory;
  std::vector<std::unique_ptr<Kernel>> kernels;  // per step
};

// Throws UserError when no kernel takes a node, with every refusal.
Plan make_plan(Graph graph, Backend& backend);

std::string memory_table(const Plan& plan);
std::string kernel_table(const Plan& plan);  // --explain kernels

}  // namespace lockstep
