// NodeCodec: compression that rounds at every node of the canonical tree (bf16, int8).
//
// A leaf is rounded when it is complete, and so is every sum of two nodes, by whoever makes it: a worker
// within its own leaves, the owner of a bucket's slice, a Reduction Server. A rounded value is one that can
// be sent as it is, so what a worker keeps as f32 and what travels are the same numbers, and the bits of the
// root do not depend on where the workers' borders are. Nothing is kept from one step to the next.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "base/gradient_codec.h"
#include "base/thread_pool.h"
#include "comm/group.h"
#include "train/sums/exchange.h"

namespace lockstep {

class NodeCodec {
 public:
  // Whether a codec is one of these.
  static bool covers(GradientCodec codec) {
    return codec == GradientCodec::kBf16 || codec == GradientCodec::kInt8;
  }

  NodeCodec(GradientCodec codec, int threads);

  SumType type() const { return codec_ == GradientCodec::kBf16 ? SumType::kBF16 : SumType::kInt8; }
  // Of so many values, whole blocks of the flat layout.
  int64_t elements(int64_t count) const { return elements_in(type(), count); }
  int64_t bytes(int64_t count) const { return elements(count) * size_of(type()); }
  void encode(void* into, const float* from, int64_t count) const;
  void decode(float* into, const void* from, int64_t count) const;
  // Rounds the last of some slots, adds the one before it, rounds the sum, and so on to the first, which
  // receives it.
  void merge(std::span<float* const> slots, int64_t count);

 private:
  GradientCodec codec_;
  ThreadPool pool_;
};

// Brings the partial sums of a worker to the others in coded form, bucket by bucket, and the root back. Of
// memory of the host alone.
class CodedExchange {
 public:
  CodedExchange(Group& group, const NodeCodec& codec, int64_t partials, int64_t bucket);

  // See Exchange (train/sums/exchange.h).
  Group::Ticket start(std::vector<float*> partials, const BucketTransfer& bucket);
  int64_t bytes() const { return coded_.bytes(); }

 private:
  Group& group_;
  const NodeCodec& codec_;
  int64_t stride_;
  SharedBuffer coded_;  // of the bucket that is under way: the group runs one sum at a time
};

}  // namespace lockstep
