// What can be summed over ranks: gradients and losses (f32), counts (i64).
#pragma once
#include <cstdint>
#include <string_view>

namespace lockstep {

enum class SumType : uint8_t { kF32, kI64 };

constexpr int64_t size_of(SumType type) { return type == SumType::kF32 ? 4 : 8; }
constexpr std::string_view name_of(SumType type) { return type == SumType::kF32 ? "f32" : "i64"; }

// kCanonical: the tree over the leaves, the same bits on any number of ranks. kFast: one buffer a rank,
// summed by a tree over the ranks; its bits depend on how many they are. It is outside the promise, and there
// so that the cost of the promise can be measured.
enum class SumOrder : uint8_t { kCanonical, kFast };

}  // namespace lockstep
