#include "train/sums/buckets.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number_text.h"

namespace lockstep {
namespace {

constexpr int64_t kParts = 32;
constexpr int64_t kLeastBytes = 512 << 10;
constexpr int64_t kMostBytes = 16 << 20;

// Whole blocks.
int64_t elements_of_a_bucket(const FlatLayout& layout, int64_t total, int64_t bytes) {
  const int64_t element = size_of(layout.dtype());
  const int64_t wanted =
      bytes > 0 ? bytes / element : std::clamp(total / kParts, kLeastBytes / element, kMostBytes / element);
  return std::max<int64_t>(1, (std::min(wanted, total) + kFlatBlock - 1) / kFlatBlock) * kFlatBlock;
}

}  // namespace

Buckets::Buckets(const FlatLayout& layout, int64_t bytes, bool owned) : total_bytes_(layout.sums_bytes()) {
  const int64_t total = layout.dtype() == DType::kF32 && !owned ? layout.sums_numel() : layout.numel();
  const int64_t size = elements_of_a_bucket(layout, total, bytes);
  bytes_ = size * size_of(layout.dtype());
  cut({0, total}, size);
  gradients_ = count();
  cut({total, layout.sums_numel()}, bytes_ / size_of(DType::kF32));
}

Buckets Buckets::of_parameters(const FlatLayout& layout, int64_t bytes) {
  Buckets buckets;
  const int64_t size = elements_of_a_bucket(layout, layout.numel(), bytes);
  int64_t begin = 0;
  const auto entries = layout.entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    const int64_t end = i + 1 < entries.size() ? entries[i + 1].offset : layout.numel();
    if (end - begin < size && i + 1 < entries.size()) continue;
    buckets.parts_.push_back({begin, end});
    buckets.cut({begin, end}, size);
    begin = end;
  }
  buckets.bytes_ = size * size_of(layout.dtype());
  buckets.total_bytes_ = layout.sums_offset(layout.numel());
  buckets.gradients_ = buckets.count();
  return buckets;
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
