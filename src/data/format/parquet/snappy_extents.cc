#include "data/format/parquet/snappy_extents.h"

#include <algorithm>
#include <cstring>

namespace lockstep::parquet {
namespace {

// The bytes of a stream one after another; past its end they are 0, and `failed`.
struct Stream {
  std::string_view bytes;
  size_t at = 0;
  bool failed = false;

  uint32_t little_endian(size_t count) {
    uint32_t value = 0;
    if (count > bytes.size() - at)
      failed = true;
    else
      std::memcpy(&value, bytes.data() + at, count);
    at += failed ? 0 : count;
    return value;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift <= 28 && !failed; shift += 7) {
      const uint32_t next = little_endian(1);
      value |= uint64_t{next & 0x7f} << shift;
      if (next < 0x80) return value;
    }
    failed = true;
    return 0;
  }
};

constexpr uint32_t kLiteral = 0;
constexpr size_t kShortLiterals = 60;  // longer ones have their length in 1 to 4 bytes

}  // namespace

bool SnappyExtents::find(std::string_view stream, size_t unpacked) {
  count_ = 0;
  unpacked_ = unpacked;
  Stream tags{stream};
  if (stream.size() > UINT32_MAX || tags.varint() != unpacked) return false;
  size_t done = 0;
  while (done < unpacked && !tags.failed) {
    const uint32_t tag = tags.little_endian(1), kind = tag & 3;
    size_t length = (tag >> 2) + 1, back = 0;
    if (kind == kLiteral) {
      if (length > kShortLiterals) length = size_t{tags.little_endian(length - kShortLiterals)} + 1;
      if (length > stream.size() - tags.at) return false;
    } else if (kind == 1) {
      length = (tag >> 2 & 7) + 4;
      back = size_t{tag >> 5} << 8 | tags.little_endian(1);
    } else {
      back = tags.little_endian(kind == 2 ? 2 : 4);
    }
    if (tags.failed || length > unpacked - done || (kind != kLiteral && back == 0)) return false;
    if (!add(done, tags.at, back, length)) return false;
    done += length;
    if (kind == kLiteral) tags.at += length;
  }
  return !tags.failed && done == unpacked && tags.at == stream.size();
}

bool SnappyExtents::add(size_t done, size_t at, size_t back, size_t length) {
  if (count_ == kMost || back > done || done + length > UINT32_MAX) return false;
  extents_[count_++] = {static_cast<uint32_t>(done), static_cast<uint32_t>(at), static_cast<uint32_t>(back)};
  return true;
}

const SnappyExtents::Extent& SnappyExtents::of(size_t at) const {
  return *(std::upper_bound(extents_.data(), extents_.data() + count_, at,
                            [](size_t place, const Extent& extent) { return place < extent.first; }) -
           1);
}

void SnappyExtents::read(const char* stream, size_t at, size_t count, char* out) const {
  const Extent& extent = of(at);
  if (extent.back == 0 && at + count <= end_of(extent)) {
    const char* const from = stream + extent.at + (at - extent.first);
    if (count == 4)
      std::memcpy(out, from, 4);
    else
      std::memcpy(out, from, count);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    size_t from = at + i;
    const Extent* holds = &of(from);
    for (; holds->back > 0; holds = &of(from)) from -= holds->back;
    out[i] = stream[holds->at + (from - holds->first)];
  }
}

}  // namespace lockstep::parquet
