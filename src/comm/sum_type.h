// What can be summed over ranks: gradients and losses (f32; gradients also in bf16, where every sum of two is
// rounded to nearest), counts (i64); in which order says SumOrder.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "base/choices.h"

namespace lockstep {

enum class SumType : uint8_t { kF32, kI64, kBF16 };

constexpr int64_t size_of(SumType type) {
  constexpr std::array<int64_t, 3> kSizes = {4, 8, 2};
  return kSizes[static_cast<size_t>(type)];
}
constexpr std::string_view name_of(SumType type) {
  constexpr std::array<std::string_view, 3> kNames = {"f32", "i64", "bf16"};
  return kNames[static_cast<size_t>(type)];
}

}  // namespace lockstep
