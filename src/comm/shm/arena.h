// Hands out pieces of a rank's own segment. Memory is taken from the machine when a piece is handed out, and
// given back when it is released: what does not fit is an error here, never a fault in the middle of a step.
#pragma once
#include <map>
#include <memory>
#include <mutex>

#include "comm/shm/segment.h"

namespace lockstep::shm {

class Arena {
 public:
  explicit Arena(std::shared_ptr<Segment> segment);

  // Zeros, aligned to a page. UserError when the machine has less memory to give.
  std::byte* allocate(int64_t bytes);
  void release(std::byte* memory) noexcept;

 private:
  std::shared_ptr<Segment> segment_;
  std::mutex mutex_;
  std::map<int64_t, int64_t> free_;  // offset -> bytes
  std::map<int64_t, int64_t> used_;
};

}  // namespace lockstep::shm
