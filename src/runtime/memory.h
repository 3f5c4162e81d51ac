// The memory plan: which values share which bytes.
//
// Every buffer lives from the step that first writes it to the last that reads it. Buffers are packed into
// one arena by best fit, trying several orders and keeping the smallest; the plan reports its peak beside the
// lower bound (the most bytes alive at once, which no packing can beat).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace lockstep {

enum class MemoryCategory : uint8_t {
  kParameters,
  kGradients,
  kState,
  kInputs,
  kActivations,
  kScratch,
  kWorkspace,
  kKernels,        // what kernels hold beside the plan's buffers
  kCommunication,  // what transfers to other ranks go through
};
inline constexpr int kMemoryCategories = 9;
std::string_view name_of(MemoryCategory category);

// Bytes needed by one buffer over the steps [first, last].
struct LiveInterval {
  int64_t bytes = 0;
  int32_t first = 0;
  int32_t last = 0;
  MemoryCategory category = MemoryCategory::kScratch;
  int64_t fixed_offset = -1;  // >= 0: must lie there
};

struct Packing {
  std::vector<int64_t> offsets;  // per interval
  int64_t peak = 0;
  int64_t lower_bound = 0;
  std::string order;  // which order of placement won
};

// Offsets are multiples of alignment. Intervals of zero bytes get offset 0. No interval crosses `border`:
// bytes below it and bytes above may belong to different buffers.
Packing pack_intervals(const std::vector<LiveInterval>& intervals, int64_t alignment, int64_t border = 0);
int64_t live_lower_bound(const std::vector<LiveInterval>& intervals, int64_t alignment);

}  // namespace lockstep
