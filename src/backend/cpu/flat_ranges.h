// Walks a flat buffer in fixed tasks, cut where weight decay switches on or off.
#pragma once
#include <algorithm>
#include <vector>

#include "backend/cpu/kernel_def.h"

namespace lockstep::cpu {

// Elements per task: a few hundred kilobytes over all streams, so that tasks are worth sharing and stay in
// cache order.
inline constexpr int64_t kFlatTask = 32768;

// Calls body(begin, end, decays) over [begin, end); `no_decay` is the attribute of the optimizer ops.
template <typename Body>
void for_decay_ranges(int64_t begin, int64_t end, const std::vector<int64_t>& no_decay, const Body& body) {
  while (begin < end) {
    // Edges before or at `begin` come in pairs while decay is on, odd while it is off.
    const auto next = std::upper_bound(no_decay.begin(), no_decay.end(), begin);
    const bool decays = (next - no_decay.begin()) % 2 == 0;
    const int64_t stop = next == no_decay.end() ? end : std::min(end, *next);
    body(begin, stop, decays);
    begin = stop;
  }
}

// The same over [0, count), in tasks.
template <typename Body>
void for_flat_ranges(const CpuContext& context, int64_t count, const std::vector<int64_t>& no_decay,
                     const Body& body) {
  for_rows(context, count, kFlatTask,
           [&](int64_t begin, int64_t end) { for_decay_ranges(begin, end, no_decay, body); });
}

}  // namespace lockstep::cpu
