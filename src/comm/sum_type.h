// What can be summed over ranks: gradients and losses (f32), counts (i64); in which order says SumOrder.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/choices.h"

namespace lockstep {

enum class SumType : uint8_t { kF32, kI64 };

constexpr int64_t size_of(SumType type) { return type == SumType::kF32 ? 4 : 8; }
constexpr std::string_view name_of(SumType type) { return type == SumType::kF32 ? "f32" : "i64"; }

}  // namespace lockstep
