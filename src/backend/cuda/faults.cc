#include "backend/cuda/faults.h"

#include <cuda_runtime.h>

#include "backend/cuda/kernels/launch.h"
#include "base/error.h"

namespace lockstep::cuda {
namespace {

constexpr int kPlacesPerBlock = 512;
constexpr unsigned long long kNothing = ~0ull;

}  // namespace

Faults::Place::Place(Faults& faults, Words words) : faults_(faults), at_(faults.take(std::move(words))) {}
Faults::Place::~Place() { faults_.give_back(at_); }

Faults::~Faults() {
  for (void* block : blocks_) cudaFreeHost(block);
}

unsigned long long* Faults::take(Words words) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    void* block = nullptr;
    require(cudaHostAlloc(&block, kPlacesPerBlock * sizeof(kNothing), cudaHostAllocDefault),
            "pinned memory for faults");
    blocks_.push_back(block);
    for (int i = kPlacesPerBlock; i-- > 0;) free_.push_back(static_cast<unsigned long long*>(block) + i);
  }
  unsigned long long* const at = free_.back();
  free_.pop_back();
  *at = kNothing;
  taken_.emplace(at, std::move(words));
  return at;
}

void Faults::give_back(unsigned long long* at) {
  const std::lock_guard lock(mutex_);
  taken_.erase(at);
  free_.push_back(at);
}

void Faults::check() {
  const std::lock_guard lock(mutex_);
  for (const auto& [at, words] : taken_) {
    const unsigned long long found = *static_cast<volatile unsigned long long*>(at);
    if (found == kNothing) continue;
    *at = kNothing;
    throw UserError("{}", words(static_cast<int64_t>(found)));
  }
}

}  // namespace lockstep::cuda
