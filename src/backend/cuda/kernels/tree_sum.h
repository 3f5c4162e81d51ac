// tree_sum: element by element, the sum of up to 16 buffers in the order of the canonical tree
// (comm/leaf_range.h).
//
// Where sources are not the leaves themselves but partial sums of different sizes, merges say the order:
// after source n the last two sums are added merges[n] times (backend/device_sharing.h).
//
// Buffers may belong to other processes or devices: they are only read. An output may be a source. f32 sums
// are exact to the bit those of the host; 16-bit sources are added in f32 and rounded at every node of the
// tree where round_nodes is set, else once.
#pragma once
#include "backend/cuda/kernels/launch.h"

namespace lockstep::cuda {

inline constexpr int kMostTreeSources = 16;

struct TreeSources {
  const void* address[kMostTreeSources];
  int count;
  unsigned char merges[kMostTreeSources] = {};  // all zero: sources are leaves of the tree
};

void tree_sum(cudaStream_t stream, DType dtype, const TreeSources& sources, bool round_nodes, void* out,
              int64_t count);

}  // namespace lockstep::cuda
