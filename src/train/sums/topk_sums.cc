#include "train/sums/topk_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "comm/leaf_stack.h"
#include "comm/simd/codec_loops.h"
#include "comm/simd/sum_loops.h"

namespace lockstep {

static_assert(kFlatBlock == comm::kInt8Values);

int64_t TopkSums::per_block(double share) {
  return std::clamp<int64_t>(std::llround(share * static_cast<double>(kFlatBlock)), 1, kFlatBlock);
}

int64_t TopkSums::index_bytes(double share, int64_t elements) {
  return elements / kFlatBlock * per_block(share) * static_cast<int64_t>(sizeof(uint16_t));
}

int64_t TopkSums::value_bytes(double share, int64_t elements) {
  return elements / kFlatBlock * per_block(share) * static_cast<int64_t>(sizeof(float));
}

TopkSums::TopkSums(TopkShare share, LeafResiduals& residuals, int64_t leaves, Group* group, int64_t bucket,
                   int64_t numel)
    : share_(share),
      k_(per_block(share.most())),
      residuals_(residuals),
      leaves_(leaves),
      group_(group),
      stride_(bucket / kFlatBlock * k_) {
  const auto indices = static_cast<size_t>(numel / kFlatBlock * k_);
  const int64_t sums = stack_depth(residuals.own(), leaves) * stride_;
  if (group == nullptr) {
    own_indices_.resize(indices);
    own_sums_.resize(static_cast<size_t>(sums));
    indices_ = own_indices_;
    sums_ = own_sums_.data();
    return;
  }
  shared_indices_ = group->allocate(static_cast<int64_t>(indices * sizeof(uint16_t)));
  shared_sums_ = group->allocate(sums * static_cast<int64_t>(sizeof(float)));
  indices_ = {shared_indices_.as<uint16_t>(), indices};
  sums_ = shared_sums_.as<float>();
}

int64_t TopkSums::bytes() const {
  return static_cast<int64_t>(indices_.size_bytes()) +
         stack_depth(residuals_.own(), leaves_) * stride_ * static_cast<int64_t>(sizeof(float));
}

int TopkSums::leader_rank(int64_t leaf) const {
  int rank = 0;
  while (group_->split().range(rank).end <= leaf) ++rank;
  return rank;
}

Group::Ticket TopkSums::start(Slice elements, float* root, const BucketTransfer& bucket) {
  if (residuals_.has(leader_)) select(elements);
  if (group_ == nullptr) {
    gather(elements);
    scatter(elements, root);
    return nullptr;
  }
  const int64_t count = elements.size() / kFlatBlock * k_;
  const std::span<std::byte> chosen =
      std::as_writable_bytes(std::span(indices(elements.begin), static_cast<size_t>(count)));
  std::vector<void*> partials;
  for (size_t i = 0; i < group_->split().partials(group_->rank()).size(); ++i)
    partials.push_back(sums(static_cast<int64_t>(i)));
  Reduction reduction{.type = SumType::kF32, .count = count, .label = bucket.label};
  reduction.partials = partials;
  reduction.before = [this, elements, began = bucket.began] {
    if (began) began();
    gather(elements);
  };
  reduction.after = [this, elements, root, ended = bucket.ended] {
    scatter(elements, root);
    if (ended) ended();
  };
  const int leader = leader_rank(leader_);
  // Where it fails, so does the sum behind it.
  if (bucket.last)
    group_->broadcast(chosen, leader, bucket.label);
  else
    group_->start_broadcast(chosen, leader, bucket.label);
  return start_sum(*group_, reduction, bucket);
}

void TopkSums::select(Slice elements) {
  const comm::CodecLoops& loops = comm::codec_loops();
  residuals_.pool().run(elements.size() / kFlatBlock, [&](int64_t block) {
    const int64_t element = elements.begin + block * kFlatBlock;
    loops.select_top(indices(element), residuals_.at(leader_, element), k_);
  });
}

void TopkSums::gather(Slice elements) {
  const int64_t count = elements.size() / kFlatBlock * k_;
  LeafStack stack(leaves_);
  for (int64_t leaf = residuals_.own().begin; leaf < residuals_.own().end; ++leaf) {
    float* into = sums(stack.next_slot());
    for (int64_t element = elements.begin; element < elements.end; element += kFlatBlock) {
      const float* values = residuals_.at(leaf, element);
      const uint16_t* at = indices(element);
      const bool finite = residuals_.is_finite(leaf, element);
      for (int64_t i = 0; i < k_; ++i)
        *into++ = finite ? values[at[i]] : std::numeric_limits<float>::quiet_NaN();
    }
    stack.push({leaf, leaf + 1}, [&](int64_t left, int64_t right) {
      comm::sum_loops().add2_f32(sums(left), sums(left), sums(right), count);
    });
  }
}

void TopkSums::scatter(Slice elements, float* root) {
  std::fill_n(root, elements.size(), 0.0f);
  const float* value = sums(0);
  for (int64_t element = elements.begin; element < elements.end; element += kFlatBlock) {
    const uint16_t* at = indices(element);
    float* const block = root + (element - elements.begin);
    for (int64_t i = 0; i < k_; ++i) block[at[i]] = *value++;
    for (int64_t leaf = residuals_.own().begin; leaf < residuals_.own().end; ++leaf) {
      float* const kept = residuals_.at(leaf, element);
      for (int64_t i = 0; i < k_; ++i) kept[at[i]] = 0;
    }
  }
}

}  // namespace lockstep
