#include "base/big_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kRegion = 8 * kHugePage;
constexpr size_t kLine = 64;
// What is smaller is the heap's, which does not go back to the system for it.
constexpr size_t kLeast = size_t{16} << 10;
// So many times what is held is taken in a period.
constexpr size_t kPeriod = 4;
// Of what is needed, such a part stays beside it: what is free lies in gaps.
constexpr size_t kGaps = 4;

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

BigBytes::~BigBytes() {
  if (memory_)
    memory_->give(data_, size_);
  else
    delete[] data_;
}

BigBytes BigBytes::others(size_t bytes) const {
  return memory_ ? memory_->take(bytes) : BigBytes(std::make_unique_for_overwrite<std::byte[]>(bytes));
}

BigMemory::~BigMemory() {
  for (const Region& region : regions_) munmap(region.data, region.size);
}

size_t BigMemory::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

BigBytes BigMemory::take(size_t bytes) {
  if (bytes < kLeast) return BigBytes(std::make_unique_for_overwrite<std::byte[]>(bytes));
  const size_t size = round_up(bytes, kLine);
  BigBytes taken;
  taken.size_ = size;
  const std::lock_guard lock(mutex_);
  const auto fits = [&](const auto& gap) { return gap.second >= size; };
  Region* from = nullptr;
  std::map<size_t, size_t>::iterator gap;
  for (Region& region : regions_) {
    if (region.largest < size) continue;
    gap = std::find_if(region.free.begin(), region.free.end(), fits);
    if (gap != region.free.end()) {
      from = &region;
      break;
    }
    region.largest = size - 1;  // now it is known
  }
  if (from == nullptr) {
    from = &add_region(size);
    gap = from->free.begin();
  }
  const auto [offset, length] = *gap;
  from->free.erase(gap);
  if (length > size) from->free.emplace(offset + size, length - size);
  free_ -= size;
  note_taken(size);
  taken.data_ = from->data + offset;
  taken.memory_ = shared_from_this();
  return taken;
}

// More than is asked for is mapped, so that a part of it begins with a huge page.
BigMemory::Region& BigMemory::add_region(size_t bytes) {
  const size_t size = round_up(std::max(bytes, kRegion), kHugePage);
  void* mapped = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(mapped);
  const size_t before =
      round_up(reinterpret_cast<uintptr_t>(begin), kHugePage) - reinterpret_cast<uintptr_t>(begin);
  if (before > 0) munmap(begin, before);
  if (before < kHugePage) munmap(begin + before + size, kHugePage - before);
  madvise(begin + before, size, MADV_HUGEPAGE);
  regions_.push_back({begin + before, size, {{0, size}}, size});
  held_ += size;
  free_ += size;
  return regions_.back();
}

void BigMemory::give(std::byte* data, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto region = std::find_if(regions_.begin(), regions_.end(), [&](const Region& other) {
    return data >= other.data && data < other.data + other.size;
  });
  auto offset = static_cast<size_t>(data - region->data);
  free_ += bytes;
  const auto after = region->free.lower_bound(offset);
  if (after != region->free.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      region->free.erase(before);
    }
  }
  if (after != region->free.end() && after->first == offset + bytes) {
    bytes += after->second;
    region->free.erase(after);
  }
  region->free.emplace(offset, bytes);
  region->largest = std::max(region->largest, bytes);
}

void BigMemory::note_taken(size_t bytes) {
  most_ = std::max(most_, held_ - free_);
  taken_ += bytes;
  if (taken_ < kPeriod * held_) return;
  const size_t needed = std::max(most_, most_before_);
  drop_free_regions(needed + needed / kGaps);
  most_before_ = std::exchange(most_, held_ - free_);
  taken_ = 0;
}

void BigMemory::drop_free_regions(size_t needed) {
  for (auto region = regions_.begin(); region != regions_.end();) {
    const auto next = std::next(region);
    const bool free = !region->free.empty() && region->free.begin()->second == region->size;
    if (free && held_ - region->size >= needed) {
      munmap(region->data, region->size);
      held_ -= region->size;
      free_ -= region->size;
      regions_.erase(region);
    }
    region = next;
  }
}

}  // namespace lockstep
