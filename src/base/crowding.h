// Crowding: whether the machine is busy with something else, as threads that spin find out: one that is taken
// off its core sees the clock jump.
//
// An interrupt, or a thread of the system, takes microseconds; another program that wants the core has it for
// a time slice, some milliseconds. Some long jumps within a short time mean that spinning takes a core from
// somebody. That holds for a while, then it is tried again. Nothing here changes a bit of any result.
#pragma once
#include <immintrin.h>
#include <x86intrin.h>

#include <atomic>
#include <cstdint>

namespace lockstep {

class Crowding {
 public:
  bool now() const { return always_ || __rdtsc() < until_.load(std::memory_order_relaxed); }
  // For those who know it beforehand; before threads share the object.
  void set_always() { always_ = true; }

  // Looks whether ready() holds, for so many cycles; between two looks it pauses, or calls `between`. False:
  // not yet, or the core was taken away and it is better to sleep.
  template <typename Ready, typename Between>
  bool spin(uint64_t cycles, const Ready& ready, const Between& between) {
    const uint64_t begin = __rdtsc();
    for (uint64_t last = begin; last - begin < cycles;) {
      if (ready()) return true;
      between();
      const uint64_t clock = __rdtsc();
      if (clock - last > kJump && note_jump(clock)) return ready();
      last = clock;
    }
    return false;
  }
  template <typename Ready>
  bool spin(uint64_t cycles, const Ready& ready) {
    return spin(cycles, ready, [] { _mm_pause(); });
  }

  // A thread was off its core until this time. Gives whether it is crowded now.
  bool note_jump(uint64_t clock) {
    if (clock - first_jump_.load(std::memory_order_relaxed) > kWindow) {
      first_jump_.store(clock, std::memory_order_relaxed);
      jumps_.store(0, std::memory_order_relaxed);
    }
    if (jumps_.fetch_add(1, std::memory_order_relaxed) + 1 < kJumps) return now();
    until_.store(clock + kWhile, std::memory_order_relaxed);
    return true;
  }

  // In cycles of 1 to 5 GHz.
  static constexpr uint64_t kJump = 2'000'000;      // 0.4 to 2 milliseconds
  static constexpr uint64_t kWindow = 300'000'000;  // 60 to 300 milliseconds
  static constexpr uint64_t kWhile = 300'000'000;
  static constexpr int kJumps = 3;

 private:
  std::atomic<uint64_t> until_{0}, first_jump_{0};
  std::atomic<int> jumps_{0};
  bool always_ = false;
};

}  // namespace lockstep
