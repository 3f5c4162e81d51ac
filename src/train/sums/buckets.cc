#include "train/sums/buckets.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number_text.h"

namespace lockstep {
namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kParts = 32;
constexpr int64_t kLeast = (512 << 10) / kFloat;
constexpr int64_t kMost = (16 << 20) / kFloat;

}  // namespace

Buckets::Buckets(const FlatLayout& layout, int64_t bytes) : total_(layout.sums_numel()) {
  const int64_t wanted = bytes > 0 ? bytes / kFloat : std::clamp(total_ / kParts, kLeast, kMost);
  size_ = std::max<int64_t>(1, (std::min(wanted, total_) + kFlatBlock - 1) / kFlatBlock) * kFlatBlock;
}

Slice Buckets::operator[](int64_t index) const {
  return {index * size_, std::min((index + 1) * size_, total_)};
}

std::string Buckets::text() const {
  if (count() <= 1) return fmt::format("one of {}", bytes_text(total_ * kFloat));
  return fmt::format("{} of {}", count(), bytes_text(bytes()));
}

}  // namespace lockstep
