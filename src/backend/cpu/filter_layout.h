// Reorders filters between the graph's layout and oneDNN's, in parts along the outermost axis that can run in
// parallel.
#pragma once
#include "backend/cpu/kernel_def.h"
#include "backend/cpu/onednn.h"

namespace lockstep::cpu {

class FilterLayout {
 public:
  enum class Direction { kPack, kUnpack };  // from the graph's layout to oneDNN's, or back

  FilterLayout() = default;
  FilterLayout(const dnnl::memory::desc& plain, const dnnl::memory::desc& packed, Direction direction);

  int64_t packed_bytes() const { return packed_bytes_; }
  int64_t parts() const { return parts_; }
  // Bytes of the packed filter that belong to one part: parts are contiguous there.
  int64_t packed_part_bytes() const { return packed_bytes_ / parts_; }
  void run_part(int64_t part, const void* from, void* to) const;

 private:
  dnnl::memory::desc from_, to_;  // of one part
  dnnl::reorder reorder_;
  int64_t parts_ = 1;
  int64_t packed_bytes_ = 0;
  int64_t from_part_bytes_ = 0;
  int64_t to_part_bytes_ = 0;
};

}  // namespace lockstep::cpu
