// FloatStaging: lets a kernel that computes on whole f32 tensors take and give 16-bit ones.
//
// Operands that are f32 already are passed through. For the others the kernel reserves room in its workspace,
// where they are converted before it computes, and from where results are rounded (nearest even) after it.
#pragma once
#include "backend/cpu/kernel_def.h"

namespace lockstep::cpu {

class FloatStaging {
 public:
  explicit FloatStaging(const CpuContext& context) : context_(context) {}

  // Reserves room for a tensor; the answer is its slot.
  int add(const Type& type);
  int64_t bytes() const { return bytes_; }  // of the workspace, a multiple of 64

  // The tensor's values as f32.
  const float* read(int slot, const void* data, void* workspace) const;
  // Where to write a result's values as f32; write() then stores them in the tensor.
  float* target(int slot, void* data, void* workspace) const;
  void write(int slot, void* data, void* workspace) const;

 private:
  struct Slot {
    DType dtype;
    int64_t numel;
    int64_t offset;
  };
  CpuContext context_;
  std::vector<Slot> slots_;
  int64_t bytes_ = 0;
};

// Floats of a row or tile of any floating type, converted into and out of a buffer of the caller's.
void load_floats(const CpuContext& context, DType dtype, const void* data, int64_t first, int64_t count,
                 float* to);
void store_floats(const CpuContext& context, DType dtype, const float* from, void* data, int64_t first,
                  int64_t count);

}  // namespace lockstep::cpu
