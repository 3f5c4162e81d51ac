// How the owner of a block completes the tree from everybody's partial sums.
//
// The merges of a split are compiled once into steps over blocks that stay in the nearest cache: each source
// is read once from memory, however deep the tree. The order of additions is that of the tree, element by
// element, so that neither the block's edges nor the instruction set can change a bit.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "comm/leaf_split.h"
#include "comm/sum_type.h"

namespace lockstep {

class SumProgram {
 public:
  // The whole tree, from the partial sums of all ranks: in the order of ranks and, within a rank, of leaves.
  explicit SumProgram(const LeafSplit& split);
  // One subtree, from sums over the parts of it, left to right.
  SumProgram(int64_t leaves, std::span<const LeafRange> parts);

  int64_t sources() const { return sources_; }
  // What it was made for, if for the whole tree.
  const std::optional<LeafSplit>& split() const { return split_; }
  // The most partial sums that one rank has.
  int64_t widest() const { return widest_; }

  // Sums `count` elements of every source and writes the root to every output. An output may be a source:
  // each block is read from all sources before any output is written. `streaming` writes past the caches.
  void run(SumType type, std::span<const std::byte* const> sources, std::span<std::byte* const> outputs,
           int64_t count, bool streaming) const;

 private:
  // Operands below sources_ are sources, the others scratch blocks.
  struct Step {
    int64_t into;
    std::vector<int64_t> operands;  // two: a + b; four: (a + b) + (c + d)
  };
  struct Block;
  void run_step(const Step& step, const Block& block, std::byte* into) const;
  // The last step, written to all outputs at once. False where the outputs do not allow it.
  bool root_to_all(const Block& block, std::span<std::byte* const> outputs, int64_t done,
                   bool streaming) const;
  std::optional<LeafSplit> split_;
  int64_t sources_;
  int64_t widest_;
  int64_t scratch_blocks_ = 0;
  std::vector<Step> steps_;
};

}  // namespace lockstep
