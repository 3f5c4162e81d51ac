// StageCounters: where the time of reading data goes, summed over all threads, and the memory.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/byte_budget.h"

namespace lockstep {

enum class InputStage : uint8_t { kFetch, kDecode, kTransform, kAssemble };
inline constexpr std::array<std::string_view, 4> kStageNames{"fetch", "decode", "transform", "assemble"};

struct StageTimes {
  std::array<int64_t, kStageNames.size()> nanoseconds{};
  int64_t blocks = 0;   // loaded
  int64_t bytes = 0;    // fetched
  int64_t decoded = 0;  // records
  int64_t used = 0;     // records that were copied into batches
};

class StageCounters {
 public:
  // What blocks take, and the batches that are made of them.
  explicit StageCounters(int64_t memory = INT64_MAX) : memory_(std::make_shared<ByteBudget>(memory)) {}
  explicit StageCounters(std::shared_ptr<ByteBudget> memory) : memory_(std::move(memory)) {}

  const std::shared_ptr<ByteBudget>& memory() const { return memory_; }

  // Adds the time of its life to a stage.
  class Timer {
   public:
    Timer(StageCounters& counters, InputStage stage)
        : counter_(counters.nanoseconds_[static_cast<size_t>(stage)]),
          start_(std::chrono::steady_clock::now()) {}
    ~Timer() {
      counter_ +=
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_)
              .count();
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

   private:
    std::atomic<int64_t>& counter_;
    std::chrono::steady_clock::time_point start_;
  };

  void add(InputStage stage, int64_t nanoseconds) { nanoseconds_[static_cast<size_t>(stage)] += nanoseconds; }
  void count_block(int64_t bytes, int64_t records) {
    ++blocks_;
    bytes_ += bytes;
    decoded_ += records;
  }
  void count_used(int64_t records) { used_ += records; }
  StageTimes read() const {
    StageTimes times;
    for (size_t i = 0; i < nanoseconds_.size(); ++i) times.nanoseconds[i] = nanoseconds_[i];
    times.blocks = blocks_;
    times.bytes = bytes_;
    times.decoded = decoded_;
    times.used = used_;
    return times;
  }

 private:
  std::shared_ptr<ByteBudget> memory_;
  std::array<std::atomic<int64_t>, kStageNames.size()> nanoseconds_{};
  std::atomic<int64_t> blocks_ = 0, bytes_ = 0, decoded_ = 0, used_ = 0;
};

}  // namespace lockstep
