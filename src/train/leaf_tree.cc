#include "train/leaf_tree.h"

namespace lockstep {

int64_t leaf_tree_depth(int64_t leaves) {
  int64_t depth = 1;
  while (leaves > 1) {
    leaves /= 2;
    ++depth;
  }
  return depth;
}

}  // namespace lockstep
