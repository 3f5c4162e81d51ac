// Copies of equally spaced blocks of bytes: what slice, split and concat are, whatever the axis and the
// element type.
#pragma once
#include "backend/cpu/kernel_def.h"

namespace lockstep::cpu {

struct BlockCopy {
  int64_t blocks = 0;
  int64_t bytes = 0;  // of one block
  int64_t to_stride = 0;
  int64_t from_stride = 0;
};

// Blocks do not overlap; the work is cut by shape alone.
void copy_blocks(const CpuContext& context, const BlockCopy& copy, void* to, const void* from);

// Fills `count` elements with one element of `width` bytes.
void fill_elements(void* to, const void* element, int64_t width, int64_t count);

}  // namespace lockstep::cpu
