#include "train/sums/node_codec.h"

#include <algorithm>

#include "base/error.h"
#include "comm/simd/codec_loops.h"
#include "runtime/flat.h"

namespace lockstep {
namespace {

// Values that a thread merges at a time; whole blocks of every codec.
constexpr int64_t kTask = 64 * kFlatBlock;
static_assert(kFlatBlock % comm::kInt8Values == 0);

}  // namespace

NodeCodec::NodeCodec(GradientCodec codec, int threads) : codec_(codec), pool_(threads) {
  LOCKSTEP_CHECK(covers(codec), "{} is not rounded at nodes", name_of(codec));
}

void NodeCodec::encode(void* into, const float* from, int64_t count) const {
  const comm::CodecLoops& loops = comm::codec_loops();
  if (codec_ == GradientCodec::kBf16)
    loops.encode_bf16(static_cast<uint16_t*>(into), from, count);
  else
    loops.encode_int8(into, from, elements(count));
}

void NodeCodec::decode(float* into, const void* from, int64_t count) const {
  const comm::CodecLoops& loops = comm::codec_loops();
  if (codec_ == GradientCodec::kBf16)
    loops.decode_bf16(into, static_cast<const uint16_t*>(from), count);
  else
    loops.decode_int8(into, from, elements(count));
}

void NodeCodec::merge(std::span<float* const> slots, int64_t count) {
  const comm::CodecLoops& loops = comm::codec_loops();
  pool_.run((count + kTask - 1) / kTask, [&](int64_t task) {
    std::vector<float*> terms(slots.begin(), slots.end());
    for (float*& term : terms) term += task * kTask;
    (codec_ == GradientCodec::kBf16 ? loops.merge_bf16 : loops.merge_int8)(
        terms.data(), static_cast<int64_t>(terms.size()), std::min(kTask, count - task * kTask));
  });
}

CodedExchange::CodedExchange(Group& group, const NodeCodec& codec, int64_t partials, int64_t bucket)
    : group_(group),
      codec_(codec),
      stride_(codec.bytes(bucket)),
      coded_(group.allocate(partials * codec.bytes(bucket))) {}

Group::Ticket CodedExchange::start(std::vector<float*> partials, const BucketTransfer& bucket) {
  const int64_t count = bucket.count;
  std::vector<void*> coded;
  for (size_t i = 0; i < partials.size(); ++i)
    coded.push_back(coded_.data() + static_cast<int64_t>(i) * stride_);
  Reduction reduction{.type = codec_.type(), .count = codec_.elements(count), .label = bucket.label};
  reduction.partials = coded;
  reduction.before = [this, began = bucket.began, partials, coded, count] {
    if (began) began();
    for (size_t i = 0; i < partials.size(); ++i) codec_.encode(coded[i], partials[i], count);
  };
  const Slice mine =
      bucket.whom == SumFor::kAll ? Slice{0, count} : slice_of(count, group_.size(), group_.rank());
  reduction.after = [this, ended = bucket.ended, into = partials[0],
                     from = static_cast<const std::byte*>(coded[0]), mine] {
    if (mine.size() > 0) codec_.decode(into + mine.begin, from + codec_.bytes(mine.begin), mine.size());
    if (ended) ended();
  };
  return start_sum(group_, reduction, bucket);
}

}  // namespace lockstep
