// Philox4x32-10 on the device: the words of base/philox.h, bit for bit.
#pragma once
#include <cstdint>

#include "base/philox_constants.h"

namespace lockstep::cuda {

__device__ __forceinline__ uint4 philox4x32(uint4 c, uint2 key) {
#pragma unroll
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint32_t high0 = __umulhi(kPhiloxMultiplier0, c.x), low0 = kPhiloxMultiplier0 * c.x;
    const uint32_t high1 = __umulhi(kPhiloxMultiplier1, c.z), low1 = kPhiloxMultiplier1 * c.z;
    c = {high1 ^ c.y ^ key.x, low1, high0 ^ c.w ^ key.y, low0};
    key.x += kPhiloxWeyl0;
    key.y += kPhiloxWeyl1;
  }
  return c;
}

// Philox(seed, stream) of base/philox.h, its stream as ops/random_stream.h makes it.
struct DevicePhilox {
  uint2 seed;
  uint2 stream;

  __device__ __forceinline__ DevicePhilox(uint2 domain, int64_t key, const int64_t* seed_and_position) {
    const auto s = static_cast<uint64_t>(seed_and_position[0]);
    const auto p = static_cast<uint64_t>(seed_and_position[1]);
    const auto k = static_cast<uint64_t>(key);
    seed = {static_cast<uint32_t>(s), static_cast<uint32_t>(s >> 32)};
    const uint4 words = philox4x32({static_cast<uint32_t>(k), static_cast<uint32_t>(k >> 32),
                                    static_cast<uint32_t>(p), static_cast<uint32_t>(p >> 32)},
                                   domain);
    stream = {words.x, words.y};
  }
  // Words 4 block to 4 block + 3.
  __device__ __forceinline__ uint4 block(uint64_t block) const {
    return philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), stream.x, stream.y},
                      seed);
  }
};

// As ops/stochastic_rounding.h: the bits of a bf16.
__device__ __forceinline__ uint16_t round_stochastically(float x, uint32_t word) {
  const uint32_t bits = __float_as_uint(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) {
    const bool nan = (bits & 0x007fffffu) != 0;
    return nan ? uint16_t{0x7fff} : static_cast<uint16_t>(bits >> 16);
  }
  return static_cast<uint16_t>((bits + (word >> 16)) >> 16);
}

}  // namespace lockstep::cuda
