// What can be summed over ranks: gradients and losses (f32; gradients also in bf16, where every sum of two is
// rounded to nearest, and in blocks of int8, where every sum of two is coded anew), counts (i64); in which
// order says SumOrder.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "base/choices.h"
#include "comm/simd/codec_loops.h"

namespace lockstep {

// An element of kInt8 is a block of comm::kInt8Values coded values.
enum class SumType : uint8_t { kF32, kI64, kBF16, kInt8 };
inline constexpr SumType kLastSumType = SumType::kInt8;

constexpr int64_t size_of(SumType type) {
  constexpr std::array<int64_t, 4> kSizes = {4, 8, 2, comm::kInt8Bytes};
  return kSizes[static_cast<size_t>(type)];
}
constexpr std::string_view name_of(SumType type) {
  constexpr std::array<std::string_view, 4> kNames = {"f32", "i64", "bf16", "int8 blocks"};
  return kNames[static_cast<size_t>(type)];
}
// The edges of what is dealt out to ranks fall on multiples of `block` values: so many elements of a type.
constexpr int64_t elements_in(SumType type, int64_t block) {
  return type == SumType::kInt8 ? (block + comm::kInt8Values - 1) / comm::kInt8Values : block;
}

}  // namespace lockstep
