// Loops of the reduction over plain pointers, compiled once per instruction set. Sums are element by element,
// so every set gives the same bits. `into` may be one of the operands, but no other overlap is allowed.
#pragma once
#include <cstdint>

namespace lockstep::comm {

struct SumLoops {
  void (*add2_f32)(float* into, const float* a, const float* b, int64_t n);  // a + b
  void (*add4_f32)(float* into, const float* a, const float* b, const float* c, const float* d,
                   int64_t n);  // (a + b) + (c + d)
  // The same in bf16: each sum of two is rounded to nearest even, and a NaN is the canonical one, as a
  // backend's add does.
  void (*add2_bf16)(uint16_t* into, const uint16_t* a, const uint16_t* b, int64_t n);
  void (*add4_bf16)(uint16_t* into, const uint16_t* a, const uint16_t* b, const uint16_t* c,
                    const uint16_t* d, int64_t n);
  void (*add2_i64)(int64_t* into, const int64_t* a, const int64_t* b, int64_t n);
  // a + b, or (a + b) + (c + d) with four operands, to every output. n is a multiple of 16; each line is read
  // from all operands before it is written to any output.
  void (*sum_to_all_f32)(float* const* outputs, int64_t output_count, const float* const* operands,
                         int64_t operand_count, int64_t n);
  // The same past the caches: outputs are aligned to a line, and an sfence must follow.
  void (*sum_past_to_all_f32)(float* const* outputs, int64_t output_count, const float* const* operands,
                              int64_t operand_count, int64_t n);
  // Copies line by line. The C library's copy turns to string instructions for sizes like ours, which take
  // data from another core's cache at half the speed.
  void (*copy)(void* into, const void* from, int64_t bytes);
  // Copies past the caches: what another rank reads next is not in ours anyway, and the line that is
  // overwritten need not be read first. An sfence must follow before anybody is told.
  void (*stream)(void* into, const void* from, int64_t bytes);
};

namespace avx2 {
extern const SumLoops sum_loops;
}
namespace avx512 {
extern const SumLoops sum_loops;
}

// Those of the widest instruction set that this processor has.
const SumLoops& sum_loops();

}  // namespace lockstep::comm
