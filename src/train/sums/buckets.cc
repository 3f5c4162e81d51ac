#include "train/sums/buckets.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number_text.h"

namespace lockstep {
namespace {

constexpr int64_t kParts = 32;
constexpr int64_t kMostBytes = 16 << 20;

// Whole blocks.
int64_t elements_of_a_bucket(const FlatLayout& layout, int64_t total, int64_t bytes,
                             int64_t least = kLeastBucket) {
  const int64_t element = size_of(layout.dtype());
  const int64_t wanted =
      bytes > 0 ? bytes / element : std::clamp(total / kParts, least / element, kMostBytes / element);
  return std::max<int64_t>(1, (std::min(wanted, total) + kFlatBlock - 1) / kFlatBlock) * kFlatBlock;
}

int64_t end_of(const FlatLayout& layout, size_t entry) {
  return entry + 1 < layout.entries().size() ? layout.entries()[entry + 1].offset : layout.numel();
}

// Whether a parameter has more than twice the elements of any other of its block: an embedding, a head.
bool outweighs_block(const FlatLayout& layout, size_t entry) {
  const FlatEntry& own = layout.entries()[entry];
  return std::all_of(layout.entries().begin(), layout.entries().end(), [&](const FlatEntry& other) {
    return other.block != own.block || other.name == own.name || 2 * other.shape.numel() < own.shape.numel();
  });
}

bool begins_stage(const FlatLayout& layout, size_t entry) {
  return entry == 0 || layout.entries()[entry].stage != layout.entries()[entry - 1].stage;
}

std::vector<Slice> units_of(const FlatLayout& layout, int64_t least) {
  std::vector<Slice> units;
  bool alone = false;   // whether the last one is a parameter by itself
  size_t of_stage = 0;  // units
  // The last one of a stage.
  const auto join_small = [&] {
    if (of_stage < 2 || units.back().size() >= least) return;
    const int64_t end = units.back().end;
    units.pop_back();
    units.back().end = end;
  };
  for (size_t i = 0; i < layout.entries().size(); ++i) {
    const FlatEntry& entry = layout.entries()[i];
    const int64_t end = end_of(layout, i);
    const bool outweighs = outweighs_block(layout, i) && end - entry.offset >= least;
    if (begins_stage(layout, i)) {
      join_small();
      of_stage = 0;
    }
    const bool begins = outweighs || alone || (i > 0 && entry.block != layout.entries()[i - 1].block);
    if (of_stage > 0 && (!begins || units.back().size() < least)) {
      units.back().end = end;
    } else {
      units.push_back({entry.offset, end});
      ++of_stage;
    }
    alone = outweighs;
  }
  join_small();
  return units;
}

}  // namespace

Buckets::Buckets(const FlatLayout& layout, int64_t bytes, bool owned, int64_t least)
    : total_bytes_(layout.sums_bytes()) {
  const int64_t total = layout.dtype() == DType::kF32 && !owned ? layout.sums_numel() : layout.numel();
  const int64_t size = elements_of_a_bucket(layout, total, bytes, least);
  bytes_ = size * size_of(layout.dtype());
  cut({0, total}, size);
  gradients_ = count();
  cut({total, layout.sums_numel()}, bytes_ / size_of(DType::kF32));
}

Buckets Buckets::of_parameters(const FlatLayout& layout, int64_t bytes, bool by_units) {
  Buckets buckets;
  const int64_t size = elements_of_a_bucket(layout, layout.numel(), bytes);
  buckets.units_ = by_units ? units_of(layout, size) : std::vector<Slice>{};
  auto unit = buckets.units_.begin();
  int64_t begin = 0;
  const auto entries = layout.entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    const int64_t end = end_of(layout, i);
    const bool ends_unit = unit != buckets.units_.end() && unit->end == end;
    if (ends_unit) ++unit;
    const bool ends_stage = i + 1 == entries.size() || begins_stage(layout, i + 1);
    if (end - begin < size && !ends_unit && !ends_stage) continue;
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
