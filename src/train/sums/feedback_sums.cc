#include "train/sums/feedback_sums.h"

#include "base/error.h"
#include "train/sums/power_sums.h"
#include "train/sums/topk_sums.h"

namespace lockstep {

std::unique_ptr<FeedbackSums> make_feedback_sums(const ReduceOptions& options, const FlatLayout& layout,
                                                 LeafResiduals& residuals, int64_t leaves, Group* group,
                                                 int64_t bucket) {
  if (options.codec == GradientCodec::kTopk)
    return std::make_unique<TopkSums>(TopkShare(options), residuals, leaves, group, bucket, layout.numel());
  if (options.codec == GradientCodec::kPowersgd)
    return std::make_unique<PowerSums>(layout, PowerRank(options), residuals, leaves, group);
  throw InternalError("no sums of {}", name_of(options.codec));
}

}  // namespace lockstep
