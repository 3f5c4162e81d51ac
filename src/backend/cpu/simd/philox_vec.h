// PhiloxVec: the words of kLanes / 2 consecutive Philox blocks at once, in element order, equal to
// base/philox.h.
//
// A block lives in one 64-bit lane. The vector multiply reads the low half of a lane and fills the whole of
// it, so the high halves may hold leftovers between rounds: no shuffle is needed until the end. Blocks are
// dealt to lanes such that the final interleave leaves the words in order.
#pragma once
#include "backend/cpu/simd/vec.h"
#include "base/philox_constants.h"

namespace lockstep::cpu::LOCKSTEP_ISA {

typedef uint32_t VecWord __attribute__((vector_size(sizeof(Vec)), may_alias));
typedef uint64_t VecWide __attribute__((vector_size(sizeof(Vec)), may_alias));

#if defined(__AVX512F__)
inline VecWide multiply_low_halves(VecWide a, VecWide b) {
  return (VecWide)_mm512_mul_epu32((__m512i)a, (__m512i)b);
}
inline VecWord interleave_low(VecWide a, VecWide b) {
  return (VecWord)_mm512_unpacklo_epi64((__m512i)a, (__m512i)b);
}
inline VecWord interleave_high(VecWide a, VecWide b) {
  return (VecWord)_mm512_unpackhi_epi64((__m512i)a, (__m512i)b);
}
inline constexpr VecWide kBlockOfLane = {0, 4, 1, 5, 2, 6, 3, 7};
#else
inline VecWide multiply_low_halves(VecWide a, VecWide b) {
  return (VecWide)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}
inline VecWord interleave_low(VecWide a, VecWide b) {
  return (VecWord)_mm256_unpacklo_epi64((__m256i)a, (__m256i)b);
}
inline VecWord interleave_high(VecWide a, VecWide b) {
  return (VecWord)_mm256_unpackhi_epi64((__m256i)a, (__m256i)b);
}
inline constexpr VecWide kBlockOfLane = {0, 2, 1, 3};
#endif

class PhiloxVec {
 public:
  static constexpr int kWords = 2 * kLanes;
  static constexpr int kBlocks = kWords / 4;
  struct Words {
    VecWord first, second;
  };

  PhiloxVec(uint64_t seed, uint64_t stream)
      : stream_low_(VecWide{} + (stream & 0xffffffffu)), stream_high_(VecWide{} + (stream >> 32)) {
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < kPhiloxRounds; ++round, k0 += kPhiloxWeyl0, k1 += kPhiloxWeyl1) {
      key0_[round] = VecWide{} + uint64_t{k0};
      key1_[round] = VecWide{} + uint64_t{k1};
    }
  }

  // Words 4 * block ... 4 * block + kWords - 1 of the stream.
  Words words(uint64_t block) const {
    const VecWide multiplier0 = VecWide{} + uint64_t{kPhiloxMultiplier0};
    const VecWide multiplier1 = VecWide{} + uint64_t{kPhiloxMultiplier1};
    VecWide c0 = kBlockOfLane + block, c1 = c0 >> 32, c2 = stream_low_, c3 = stream_high_;
    for (int round = 0; round < kPhiloxRounds; ++round) {
      const VecWide product0 = multiply_low_halves(c0, multiplier0);
      const VecWide product1 = multiply_low_halves(c2, multiplier1);
      c0 = (product1 >> 32) ^ c1 ^ key0_[round];
      c2 = (product0 >> 32) ^ c3 ^ key1_[round];
      c1 = product1;
      c3 = product0;
    }
    const VecWide low = VecWide{} + uint64_t{0xffffffffu};
    const VecWide first_pair = (c0 & low) | (c1 << 32), second_pair = (c2 & low) | (c3 << 32);
    return {interleave_low(first_pair, second_pair), interleave_high(first_pair, second_pair)};
  }

 private:
  VecWide stream_low_, stream_high_;
  VecWide key0_[kPhiloxRounds], key1_[kPhiloxRounds];
};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
