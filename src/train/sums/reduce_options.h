// How the sums of several workers meet.
#pragma once
#include <cstdint>

#include "backend/device_messages.h"
#include "base/gradient_codec.h"
#include "comm/sum_type.h"

namespace lockstep {

// Below it the latency of a network shows; that of a way through Reduction Servers below another: a gpt of 13
// MB of gradients on 4 hosts took 307 ms a step in buckets of 512 KiB, and 146 in those of 2 MiB (directly
// 178).
inline constexpr int64_t kLeastBucket = 512 << 10;
inline constexpr int64_t kLeastServedBucket = 2 << 20;

struct ReduceOptions {
  SumOrder order = SumOrder::kCanonical;
  int64_t bucket_bytes = 0;             // 0: from the size of the gradients (train/sums/buckets.h)
  int64_t least_bucket = kLeastBucket;  // where bucket_bytes is 0
  // False: nothing is sent, and every worker goes on with what it has. Only good for measuring what
  // communication costs.
  bool exchange = true;
  // Every worker ends with the sums of the gradients that it owns alone (train/state/ownership.h).
  bool owned = false;
  // How devices with memory of their own exchange them.
  DeviceWay way = {};
  // How gradients are compressed; decides bits, also those of one worker.
  GradientCodec codec = GradientCodec::kNone;
  double topk = 0.01;  // share of the values that are sent, of GradientCodec::kTopk
  int64_t rank = 4;    // of GradientCodec::kPowersgd
  // Steps that are applied with exact sums before a codec with feedback begins.
  int64_t warmup = 0;
};

}  // namespace lockstep
