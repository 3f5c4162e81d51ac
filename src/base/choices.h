// Values that are chosen by name in a job file, and acted on in folders that know nothing of job files. Names
// stand in the order of the enumerators. Those that only a job's reader acts on are in job/choices.h.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep {

template <typename E>
struct ChoiceNames;  // ::names, one per enumerator

template <typename E>
requires requires { ChoiceNames<E>::names; }
std::string_view name_of(E value) { return ChoiceNames<E>::names[static_cast<size_t>(value)]; }

#define LOCKSTEP_CHOICE_NAMES(Enum, ...)                                          \
  template <>                                                                     \
  struct ChoiceNames<Enum> {                                                      \
    static constexpr auto names = std::to_array<std::string_view>({__VA_ARGS__}); \
  };

// What a worker computes on. kAuto: a GPU where there is one that this program can use, else the processor.
enum class DeviceKind : uint8_t { kAuto, kCpu, kCuda };
LOCKSTEP_CHOICE_NAMES(DeviceKind, "auto", "cpu", "cuda")

// How the peak learning rate follows from the batch.
enum class LrScaling : uint8_t { kNone, kLinear, kSqrt };
LOCKSTEP_CHOICE_NAMES(LrScaling, "none", "linear", "sqrt")

// The course of the learning rate after the warm-up.
enum class LrDecay : uint8_t { kConstant, kLinear, kCosine, kPolynomial, kInverseSqrt, kWsd };
LOCKSTEP_CHOICE_NAMES(LrDecay, "constant", "linear", "cosine", "polynomial", "inverse_sqrt", "wsd")

// What the guard does about a step whose numbers are not finite.
enum class NonFinitePolicy : uint8_t { kStop, kSkip, kRewind };
LOCKSTEP_CHOICE_NAMES(NonFinitePolicy, "stop", "skip", "rewind")

// What of forward is run again for backward instead of being kept.
enum class Recompute : uint8_t { kNone, kFused, kCheap, kBlock };
LOCKSTEP_CHOICE_NAMES(Recompute, "none", "fused", "cheap", "block")

// kCanonical: the tree over the leaves, the same bits on any number of ranks. kFast: one buffer a rank,
// summed by a tree over the ranks; its bits depend on how many they are. It is outside the promise, and there
// so that the cost of the promise can be measured.
enum class SumOrder : uint8_t { kCanonical, kFast };
LOCKSTEP_CHOICE_NAMES(SumOrder, "canonical", "fast")

// The order in which the stages of a pipeline work on the microbatches of a step; changes no bit.
enum class PipelineSchedule : uint8_t { kGpipe, k1F1B, kInterleaved, kZeroBubble };
LOCKSTEP_CHOICE_NAMES(PipelineSchedule, "gpipe", "1f1b", "interleaved", "zero-bubble")

}  // namespace lockstep
