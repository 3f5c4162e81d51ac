// Loops that code gradients for the wire, over plain pointers, compiled once per instruction set. All work
// value by value or in groups of fixed size, so every set gives the same bits.
//
// bf16: rounded to nearest even; a NaN is the canonical one.
//
// int8: blocks of 1024 values, in groups of 64 with one scale each: a value is a whole number from -127 to
// 127 times the scale. The scale is the least number of 8 bits behind the point that gets the largest value
// of the group within 127; so the largest becomes 127 exactly, 127 scales are an f32 without rounding, and
// coding what was decoded changes nothing. A group whose scale would be below the normal numbers is zero. A
// group with a value that is not finite is NaN as a whole.
#pragma once
#include <cstdint>

namespace lockstep::comm {

inline constexpr int64_t kInt8Values = 1024;
inline constexpr int64_t kInt8Group = 64;
// The scales of the groups, 16 bits each, then the values.
inline constexpr int64_t kInt8Bytes = kInt8Values / kInt8Group * 2 + kInt8Values;

struct CodecLoops {
  // n values.
  void (*encode_bf16)(uint16_t* into, const float* from, int64_t n);
  void (*decode_bf16)(float* into, const uint16_t* from, int64_t n);
  // n whole blocks.
  void (*encode_int8)(void* into, const float* from, int64_t n);
  void (*decode_int8)(float* into, const void* from, int64_t n);
  // a + b, coded anew. `into` may be one of them.
  void (*add2_int8)(void* into, const void* a, const void* b, int64_t n);
  // Nodes of the tree inside a worker, as decoded values: the last term is coded and decoded, then the one
  // before it is added and the sum coded and decoded, and so on; the first one receives the last sum. n
  // values; of int8 whole blocks of them.
  void (*merge_bf16)(float* const* terms, int64_t term_count, int64_t n);
  void (*merge_int8)(float* const* terms, int64_t term_count, int64_t n);
  // residual += gradient, n values; whether all of them are finite.
  bool (*add_residual)(float* residual, const float* gradient, int64_t n);
  // The places of the k largest magnitudes of kInt8Values values, in rising order; of equal ones the first. A
  // NaN is larger than anything.
  void (*select_top)(uint16_t* into, const float* values, int64_t k);
};

namespace avx2 {
extern const CodecLoops codec_loops;
}
namespace avx512 {
extern const CodecLoops codec_loops;
}

// Those of the widest instruction set that this processor has.
const CodecLoops& codec_loops();

}  // namespace lockstep::comm
