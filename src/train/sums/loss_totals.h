// LossTotals: the loss and what it counts, summed on the device through the same tree as the gradients. The
// host reads them once per step, with the norm.
#pragma once
#include <cstdint>
#include <memory>

#include "runtime/executable.h"

namespace lockstep {

struct LossTotal {
  float loss = 0;  // a sum
  int64_t count = 0;
};

class LossTotals {
 public:
  // One total per slot of partial sums.
  LossTotals(Backend& backend, int64_t slots);

  // On the device.
  void* loss(int64_t slot) const;
  void* count(int64_t slot) const;

  // One microbatch's, both on the device: written to the slot, or added to it.
  void add(int64_t slot, void* loss, void* count, bool first);
  void merge(int64_t into, int64_t from) { add(into, loss(from), count(from), false); }
  LossTotal read(int64_t slot) const;
  void write(int64_t slot, const LossTotal& total);

 private:
  Backend& backend_;
  std::unique_ptr<Buffer> memory_;
  std::unique_ptr<Executable> adder_;
};

}  // namespace lockstep
