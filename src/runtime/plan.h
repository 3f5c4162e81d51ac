// The plan: a graph made ready for a backend. A list of steps with fixed addresses; nothing is decided or
// allocated while it runs.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "runtime/lower.h"
#include "runtime/memory.h"
#include "runtime/transfers.h"

namespace lockstep {

// Where a value lives: in the arena, in the shared region, or in the buffer of a graph input.
struct Location {
  static constexpr int32_t kArena = -1;
  static constexpr int32_t kRegion = -2;
  int32_t input = kArena;  // index of the graph input, or one of the above
  int64_t offset = 0;
};

// A flat buffer of the caller's that holds some graph inputs at fixed places (gradients). Its bytes are free
// until the graph writes them, so whatever dies before that may lie there: activations use the gradient
// buffer until backward fills it.
//
// Passing by, it is no buffer: every part of it lies somewhere in the arena, from the first write to one of
// its entries until the second part after it is final. Whoever hears that (Executable::RegionReady) has to be
// done with all parts but the one before: it is sent while the next one is made, and parts that are final
// soon after each other wait for none. No entry crosses the edge of a part, or is read before it is written.
struct Region {
  struct Entry {
    std::string input;
    int64_t offset = 0;  // in bytes
  };
  std::vector<Entry> entries;
  int64_t bytes = 0;
  std::vector<int64_t> passing = {};  // where its parts begin, rising from 0; none: it is the caller's
};

struct PlanStep {
  int32_t node = -1;  // index in the graph
  std::string kernel;
  std::vector<Refusal> refusals;
  Location workspace;
};

struct MemoryReport {
  int64_t arena_peak = 0;          // bytes of the arena
  int64_t region_bytes = 0;        // bytes of the shared region; none where it passes by
  int64_t packed_lower_bound = 0;  // the most bytes alive at once in arena and region together
  int64_t external = 0;            // other graph inputs: parameters, state, data
  KernelMemory kernels;
  int64_t communication = 0;  // memory of groups that transfers go through
  std::string order;
  std::array<int64_t, kMemoryCategories> at_peak{};  // bytes alive at the fullest step, by category
  int32_t peak_step = 0;

  int64_t planned_peak() const {
    return arena_peak + region_bytes + external + kernels.bytes() + communication;
  }
};

struct PlanCopy {
  Value from;
  Value to;
};

struct ByteRange {
  int64_t offset;
  int64_t bytes;
};

// After this step nobody reads or writes the first bytes of the shared region any more: they hold what the
// run leaves there.
struct RegionMark {
  int32_t step = 0;
  int64_t bytes = 0;
};

// Where a part of a region that passes by lies.
struct RegionPart {
  int64_t begin = 0;  // in the region
  Location at;
};

struct Plan {
  Graph graph;
  std::vector<Location> locations = {};  // per value
  std::vector<PlanStep> steps = {};
  std::vector<PlanCopy> copies = {};  // updates that could not be written in place, done after the last step
  std::vector<ByteRange> region_gaps = {};    // padding of the shared region, by offset; cleared on the way
  std::vector<RegionMark> region_marks = {};  // in the order of steps, with growing bytes
  int64_t region_bytes = 0;                   // of the shared region, also of one that passes by
  std::vector<RegionPart> region_parts = {};  // of one that passes by
  MemoryReport memory = {};
  std::vector<std::unique_ptr<Kernel>> kernels = {};  // per step; none for views and collectives
  TransferPlan transfers = {};                        // the collectives, which no backend runs
  std::vector<Replacement> replaced;                  // nodes that were lowered to simpler ones
};

// Lowers what the backend has no kernel for; throws UserError for what cannot be.
Plan make_plan(Graph graph, Backend& backend, const Region& region = {});

std::string memory_table(const Plan& plan);
std::string kernel_table(const Plan& plan);  // --explain kernels

}  // namespace lockstep
