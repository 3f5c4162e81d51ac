// ProductChoices: which of cuBLASLt's algorithms a product runs by: the fastest of those that give the bits
// of the library's first proposal.
//
// The first proposal follows from the shape, the library and the device alone. Another one is taken only if
// its result on noise is the same to the last bit: all of them add up the inner axis in one place, so that
// tiles of another size usually agree, and one that adds in another order shows in almost every element. So
// the choice, which timing decides, changes no bits: workers and later runs may choose differently.
//
// Choices are kept on disk (disk_cache.h) by shape, library and device.
#pragma once
#include <map>
#include <mutex>
#include <string>

#include "backend/cuda/disk_cache.h"
#include "backend/cuda/products/matmul_plan.h"

namespace lockstep::cuda {

class ProductChoices {
 public:
  // `device` names all that decides how fast an algorithm is. The stream is used to time on.
  ProductChoices(std::string device, cudaStream_t stream);
  ~ProductChoices();
  ProductChoices(const ProductChoices&) = delete;
  ProductChoices& operator=(const ProductChoices&) = delete;

  // The plan must have candidates.
  AlgorithmChoice choose(const MatmulPlan& plan);

 private:
  AlgorithmChoice fastest(const MatmulPlan& plan) const;

  std::string device_;
  cudaStream_t stream_;
  int* differ_ = nullptr;  // pinned
  DiskCache disk_;
  std::mutex mutex_;
  std::map<std::string, AlgorithmChoice> known_;  // by shape
};

}  // namespace lockstep::cuda
