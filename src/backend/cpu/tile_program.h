// TileProgram: a straight line of scalar functions evaluated over a whole tensor, tile by tile.
//
// Every intermediate lives in a tile that stays in the first cache; memory is read once per operand and
// written once per result. Arithmetic is f32. Operands of other types are converted when read; a value of a
// 16-bit, integer or bool type is rounded to it as soon as it is made, so that a program gives the bits that
// its instructions would give one kernel at a time. A result may share the memory of a full operand of the
// same shape and element size.
#pragma once
#include <memory>

#include "backend/cpu/kernel_def.h"
#include "backend/cpu/sums.h"
#include "backend/cpu/tile_steps.h"

namespace lockstep::cpu {

class TileProgram {
 public:
  explicit TileProgram(const TileCode& code) : steps_(code), summed_(code.summed) {}

  int64_t workspace_bytes(const CpuContext& context) const;
  void run(const CpuContext& context, const KernelArgs& args) const;
  // The same, driven by a sum: results are stored as the terms are asked for, and each must be asked for
  // once. `args` must outlive the terms.
  std::unique_ptr<TermSource> terms(const CpuContext& context, const KernelArgs& args) const;

 private:
  TileSteps steps_;
  int summed_;
};

}  // namespace lockstep::cpu
