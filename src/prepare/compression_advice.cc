#include "prepare/compression_advice.h"

#include <fmt/format.h>

#include <cmath>

#include "base/number_text.h"
#include "train/step/train_memory.h"
#include "train/sums/power_sums.h"
#include "train/sums/topk_sums.h"

namespace lockstep {

std::vector<std::string> compression_advice(const TrainOptions& options, const FlatLayout& layout) {
  const ReduceOptions& reduce = options.reduce;
  if ((options.workers < 2 && reduce.codec == GradientCodec::kNone) || layout.dtype() != DType::kF32)
    return {};
  const int64_t values = layout.numel();
  const int64_t residuals = residual_bytes(layout, options);
  const auto workers = static_cast<double>(options.workers);
  // Of a sum between P workers with one partial sum each; partial sums go there and roots come back.
  const auto sent = [&](int64_t bytes) {
    return bytes_text(static_cast<int64_t>(2 * (workers - 1) / workers * static_cast<double>(bytes)));
  };
  std::vector<std::string> lines;
  if (options.workers > 1)
    lines.push_back(
        fmt::format("a worker sends {} of gradients a step; with strategy.reduce.compress bf16 {}, int8 {}, "
                    "topk {} ({} % of "
                    "them, with {} of indices)",
                    sent(values * 4), sent(values * 2),
                    sent(elements_in(SumType::kInt8, values) * size_of(SumType::kInt8)),
                    sent(TopkSums::value_bytes(reduce.topk, values)), 100 * reduce.topk,
                    bytes_text(TopkSums::index_bytes(reduce.topk, values))));
  lines.push_back(
      fmt::format("bf16 and int8 keep nothing; topk keeps what is not sent, for each leaf: {} a worker",
                  bytes_text(residuals)));
  if (has_feedback(reduce.codec) && reduce.warmup > 0)
    lines.push_back(fmt::format(
        "the first {} steps send exact gradients, then {}", reduce.warmup,
        reduce.codec == GradientCodec::kTopk
            ? fmt::format("topk begins with {:.3g} % of them and reaches {:.3g} % at step {}",
                          100 * TopkShare(reduce).most(), 100 * reduce.topk,
                          static_cast<int64_t>(std::ceil(TopkShare::kFirst / reduce.topk *
                                                         static_cast<double>(reduce.warmup))))
            : fmt::format("powersgd begins with rank {} and reaches {} at step {}", PowerRank(reduce).most(),
                          reduce.rank, static_cast<int64_t>(PowerRank::kFirst) * reduce.warmup)));
  return lines;
}

}  // namespace lockstep
