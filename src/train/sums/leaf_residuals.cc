#include "train/sums/leaf_residuals.h"

#include <algorithm>

#include "comm/simd/codec_loops.h"

namespace lockstep {

void LeafResiduals::add(int64_t leaf, const float* gradients, Slice elements) {
  constexpr int64_t kTask = 64;  // blocks
  const int64_t blocks = elements.size() / kFlatBlock;
  const comm::CodecLoops& loops = comm::codec_loops();
  pool_.run((blocks + kTask - 1) / kTask, [&](int64_t task) {
    for (int64_t block = task * kTask; block < std::min(blocks, (task + 1) * kTask); ++block) {
      const int64_t element = elements.begin + block * kFlatBlock;
      finite_[block_of(leaf, element)] =
          loops.add_residual(at(leaf, element), gradients + block * kFlatBlock, kFlatBlock) ? 1 : 0;
    }
  });
}

}  // namespace lockstep
