#include "train/sums/buckets.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number_text.h"

namespace lockstep {
namespace {

constexpr int64_t kParts = 32;
constexpr int64_t kLeastBytes = 512 << 10;
constexpr int64_t kMostBytes = 16 << 20;

}  // namespace

Buckets::Buckets(const FlatLayout& layout, int64_t bytes) : total_bytes_(layout.sums_bytes()) {
  const int64_t element = size_of(layout.dtype());
  const int64_t total = layout.dtype() == DType::kF32 ? layout.sums_numel() : layout.numel();
  const int64_t wanted =
      bytes > 0 ? bytes / element : std::clamp(total / kParts, kLeastBytes / element, kMostBytes / element);
  const int64_t size =
      std::max<int64_t>(1, (std::min(wanted, total) + kFlatBlock - 1) / kFlatBlock) * kFlatBlock;
  bytes_ = size * element;
  cut({0, total}, size);
  cut({total, layout.sums_numel()}, bytes_ / size_of(DType::kF32));
}

void Buckets::cut(Slice part, int64_t size) {
  for (int64_t begin = part.begin; begin < part.end; begin += size)
    slices_.push_back({begin, std::min(begin + size, part.end)});
}

std::string Buckets::text() const {
  if (count() <= 1) return fmt::format("one of {}", bytes_text(total_bytes_));
  return fmt::format("{} of {}", count(), bytes_text(bytes_));
}

}  // namespace lockstep
