// ProductChoices: which of cuBLASLt's algorithms a product runs by: the fastest of those that give the bits
// of the library's first proposal.
//
// The first proposal follows from the shape, the library and the device alone. Another one is taken only if
// its result on noise is the same to the last bit: all of them add up the inner axis in one place, so that
// tiles of another size usually agree, and one that adds in another order shows in almost every element. So
// the choice, which timing decides, changes no bits: workers and later runs may choose differently.
//
// Choices are kept on disk (disk_cache.h) by shape, library and device.
//
// A start waits for this, so a candidate costs two runs and, only where it is the fastest so far, a
// comparison.
#pragma once
#include <map>
#include <mutex>
#include <string>

#include "backend/cuda/disk_cache.h"
#include "backend/cuda/products/matmul_plan.h"
#include "base/phase_times.h"

namespace lockstep::cuda {

class ProductChoices {
 public:
  // `device` names all that decides how fast an algorithm is. The stream is used to time on.
  ProductChoices(std::string device, cudaStream_t stream, PhaseTimes& times);
  ~ProductChoices();
  ProductChoices(const ProductChoices&) = delete;
  ProductChoices& operator=(const ProductChoices&) = delete;

  // None where the library has no algorithm. What candidates are tried in stays allocated where
  // `keeps_memory`, until release_memory(): for one who chooses for many.
  std::optional<AlgorithmChoice> choose(const MatmulPlan& plan, bool keeps_memory = false);
  bool has(const MatmulShape& shape) const;
  void release_memory();

 private:
  struct Parts {
    void *a, *b, *want, *got, *workspace, *bias, *aux;
  };
  // Null where the device has no room.
  void* memory(int64_t bytes);
  void free_memory();
  std::optional<AlgorithmChoice> fastest(const MatmulPlan& plan);
  AlgorithmChoice fastest_of(const std::vector<AlgorithmChoice>& candidates, const MatmulPlan& plan,
                             const Parts& parts) const;

  std::string device_;
  cudaStream_t stream_;
  PhaseTimes& times_;
  int* differ_ = nullptr;  // pinned
  void* memory_ = nullptr;
  int64_t memory_bytes_ = 0;
  DiskCache disk_;
  mutable std::mutex mutex_;
  std::map<std::string, AlgorithmChoice> known_;  // by shape
};

}  // namespace lockstep::cuda
