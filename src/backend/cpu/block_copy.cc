#include "backend/cpu/block_copy.h"

#include <algorithm>
#include <cstring>

namespace lockstep::cpu {
namespace {

// Small enough that a few megabytes occupy every thread, large enough to hide the cost of a task.
constexpr int64_t kTaskBytes = 1 << 16;

// A size known to the compiler turns each block into one load and one store.
template <int64_t kBytes>
void copy_small(char* to, const char* from, const BlockCopy& copy, int64_t begin, int64_t end) {
  for (int64_t b = begin; b < end; ++b)
    std::memcpy(to + b * copy.to_stride, from + b * copy.from_stride, kBytes);
}

void copy_range(char* to, const char* from, const BlockCopy& copy, int64_t begin, int64_t end) {
  switch (copy.bytes) {
    case 1: return copy_small<1>(to, from, copy, begin, end);
    case 2: return copy_small<2>(to, from, copy, begin, end);
    case 4: return copy_small<4>(to, from, copy, begin, end);
    case 8: return copy_small<8>(to, from, copy, begin, end);
    case 16: return copy_small<16>(to, from, copy, begin, end);
    default: break;
  }
  for (int64_t b = begin; b < end; ++b)
    std::memcpy(to + b * copy.to_stride, from + b * copy.from_stride, static_cast<size_t>(copy.bytes));
}

}  // namespace

void copy_blocks(const CpuContext& context, const BlockCopy& copy, void* to, const void* from) {
  if (copy.bytes == 0) return;
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  if (copy.bytes <= kTaskBytes) {
    for_rows(context, copy.blocks, kTaskBytes / copy.bytes,
             [&](int64_t begin, int64_t end) { copy_range(target, source, copy, begin, end); });
    return;
  }
  const int64_t pieces = ceil_div(copy.bytes, kTaskBytes);
  context.pool.run(copy.blocks * pieces, [&](int64_t task) {
    const int64_t block = task / pieces;
    const int64_t begin = task % pieces * kTaskBytes;
    std::memcpy(target + block * copy.to_stride + begin, source + block * copy.from_stride + begin,
                static_cast<size_t>(std::min(kTaskBytes, copy.bytes - begin)));
  });
}

void fill_elements(void* to, const void* element, int64_t width, int64_t count) {
  if (count == 0) return;
  auto* bytes = static_cast<char*>(to);
  std::memcpy(bytes, element, static_cast<size_t>(width));
  // Doubling what is there already: a handful of memcpy calls for any count.
  for (int64_t filled = 1; filled < count;) {
    const int64_t more = std::min(filled, count - filled);
    std::memcpy(bytes + filled * width, bytes, static_cast<size_t>(more * width));
    filled += more;
  }
}

}  // namespace lockstep::cpu
