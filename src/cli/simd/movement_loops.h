// The least that a sum in place over shared buffers has to move, as bare loops: the floor beside which
// `lockstep bench allreduce --floor` sets our sums. Additions come in no particular order.
#pragma once
#include <cstdint>

namespace lockstep::movement {

struct MovementLoops {
  // The sum of all buffers into all of them; they are aligned to lines and n is a multiple of 16. Line by
  // line or in blocks of a page, with plain stores or past the caches, with or without asking for lines
  // ahead.
  void (*sum_lines)(float* const* buffers, int64_t count, int64_t n, bool past, bool ahead);
  void (*sum_pages)(float* const* buffers, int64_t count, int64_t n, bool past, bool ahead);
  // The sum into the first of them only, and a copy to be made of it elsewhere.
  void (*sum_to_first)(float* const* buffers, int64_t count, int64_t n);
  void (*copy)(float* into, const float* from, int64_t n);
};

namespace avx2 {
extern const MovementLoops movement_loops;
}
namespace avx512 {
extern const MovementLoops movement_loops;
}

}  // namespace lockstep::movement
