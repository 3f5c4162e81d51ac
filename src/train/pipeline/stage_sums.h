// StageSums: what the stages of a pipeline that a rank has add their gradients to.
//
// A rank holds sums of all its stages for as long as a step takes (StageLeafSums, over LeafSums), or one leaf
// of them, whose pieces go to their owners when it is complete (StageRoundSums, over RoundSums; ZeRO-2).
#pragma once
#include <vector>

#include "train/sums/leaf_sums.h"
#include "train/sums/round_sums.h"

namespace lockstep {

class StageSums {
 public:
  virtual ~StageSums() = default;
  virtual const SumTree& tree() const = 0;  // the microbatches of this rank's pipeline
  // Of the index-th of this rank's stages: before the first gradient of a leaf is written, and after its
  // last.
  virtual void begin_leaf(size_t part) = 0;
  virtual void end_leaf(size_t part) = 0;
  // Where the gradient that begins at this element of the layout is summed.
  virtual void* gradient(size_t part, int64_t element) = 0;
  // Of one microbatch, the index-th of this pipeline, by the last stage.
  virtual void add_loss(size_t part, int64_t microbatch, void* loss, void* count) = 0;
};

class StageLeafSums : public StageSums {
 public:
  explicit StageLeafSums(LeafSums& sums) : sums_(sums) {}
  const SumTree& tree() const override { return sums_.tree(); }
  void begin_leaf(size_t) override {}
  void end_leaf(size_t part) override { sums_.push(part); }
  void* gradient(size_t part, int64_t element) override {
    return sums_.slots().at(sums_.slot(part), element);
  }
  void add_loss(size_t part, int64_t microbatch, void* loss, void* count) override {
    sums_.totals().add(sums_.slot(part), loss, count, microbatch % tree().microbatches_per_leaf() == 0);
  }

 private:
  LeafSums& sums_;
};

class StageRoundSums : public StageSums {
 public:
  // `leaf`: memory for one leaf of the layout; `stages`: of this rank.
  StageRoundSums(RoundSums& sums, const FlatLayout& layout, void* leaf, std::vector<int> stages)
      : sums_(sums), layout_(layout), leaf_(static_cast<char*>(leaf)), stages_(std::move(stages)) {}
  const SumTree& tree() const override { return sums_.tree(); }
  void begin_leaf(size_t part) override { sums_.begin_leaf(stages_[part]); }
  void end_leaf(size_t part) override {
    sums_.end_leaf(stages_[part], [this](int64_t offset) { return leaf_ + offset; });
  }
  void* gradient(size_t, int64_t element) override { return leaf_ + layout_.sums_offset(element); }
  void add_loss(size_t, int64_t microbatch, void* loss, void* count) override {
    const int64_t per_leaf = tree().microbatches_per_leaf();
    sums_.totals().add(microbatch / per_leaf, loss, count, microbatch % per_leaf == 0);
  }

 private:
  RoundSums& sums_;
  const FlatLayout& layout_;
  char* leaf_;
  std::vector<int> stages_;
};

}  // namespace lockstep
