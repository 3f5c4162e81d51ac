// The attention loops of one instruction set: how units are numbered and scratch is laid out.
#include "backend/cpu/simd/attention_loops.h"

#include "backend/cpu/simd/attention_backward.h"
#include "backend/cpu/simd/attention_forward.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// The tiles load whole cache lines of scratch; the caller's pointer is moved up to the next one.
constexpr size_t kLineFloats = 16;

float* aligned(float* p) {
  const uintptr_t line = kLineFloats * sizeof(float);
  return reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(p) + line - 1) / line * line);
}

int64_t query_blocks(const AttentionShape& s) { return (s.queries + kBlock - 1) / kBlock; }

int64_t forward_units(const AttentionShape& s) { return s.batch * s.heads * query_blocks(s); }
int64_t backward_units(const AttentionShape& s) { return s.batch * s.kv_heads; }

size_t forward_scratch_floats(const AttentionShape& s) { return forward_floats(s) + kLineFloats; }
size_t backward_scratch_floats(const AttentionShape& s) { return backward_floats(s) + kLineFloats; }

void forward(const AttentionForward& args, int64_t first_unit, int64_t last_unit, float* scratch) {
  const ForwardScratch s = forward_scratch(aligned(scratch), args.shape.head_dim);
  const int64_t blocks = query_blocks(args.shape);
  for (int64_t unit = first_unit; unit < last_unit; ++unit) {
    const int64_t head = unit / blocks;
    forward_unit(args, head / args.shape.heads, head % args.shape.heads, unit % blocks * kBlock, s);
  }
}

void backward(const AttentionBackward& args, int64_t first_unit, int64_t last_unit, float* scratch) {
  const BackwardScratch s = backward_scratch(aligned(scratch), args.shape.head_dim);
  for (int64_t unit = first_unit; unit < last_unit; ++unit)
    backward_unit(args, unit / args.shape.kv_heads, unit % args.shape.kv_heads, s);
}

}  // namespace

extern const AttentionLoops attention_loops = {
    forward_units, backward_units, forward_scratch_floats, backward_scratch_floats, forward, backward};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
