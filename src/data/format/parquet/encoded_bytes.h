// What encodings of Parquet are read with: bytes taken one after another, and the runs of small numbers.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "data/format/parquet/thrift.h"

namespace lockstep::parquet {

// Throws Damaged where less is left than is taken.
class EncodedBytes {
 public:
  explicit EncodedBytes(std::string_view bytes) : left_(bytes) {}

  std::string_view take(uint64_t count) {
    if (count > left_.size()) throw Damaged("its values end too early");
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto next = static_cast<uint8_t>(take(1)[0]);
      value |= static_cast<uint64_t>(next & 0x7f) << shift;
      if (next < 0x80) return value;
    }
    throw Damaged("a number is too long");
  }
  int64_t zigzag() {
    const uint64_t value = varint();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  uint32_t word() {
    uint32_t value = 0;
    std::memcpy(&value, take(4).data(), 4);
    return value;
  }
  std::string_view left() const { return left_; }

 private:
  std::string_view left_;
};

// Some of the numbers that lie in runs and bit-packed groups.
struct EncodedRun {
  size_t first = 0;
  size_t count = 0;
  const char* packed = nullptr;  // null: all of them are `value`
  uint32_t value = 0;
};

// The runs that hold `count` numbers of 1 to 32 bits, in their order.
class RunReader {
 public:
  RunReader(std::string_view bytes, int bits, size_t count)
      : left_(bytes), bits_(static_cast<size_t>(bits)), count_(count) {}

  // False once all numbers were given. Throws Damaged where the bytes end before that.
  bool next(EncodedRun& run) {
    if (done_ == count_) return false;
    const uint64_t head = left_.varint();
    const uint64_t length = head >> 1;
    run = {.first = done_};
    if ((head & 1) == 0) {
      const std::string_view value = left_.take((bits_ + 7) / 8);
      std::memcpy(&run.value, value.data(), value.size());
      run.count = std::min<uint64_t>(length, count_ - done_);
    } else if (length > 0) {
      // The last group may be cut where its numbers are not needed.
      run.count = std::min<uint64_t>(length > count_ ? count_ : length * 8, count_ - done_);
      const size_t left = left_.left().size();
      const size_t stored = std::min<uint64_t>(length > count_ ? left : length * bits_, left);
      if (stored < (run.count * bits_ + 7) / 8) throw Damaged("its values end too early");
      run.packed = left_.take(stored).data();
    }
    done_ += run.count;
    return true;
  }

 private:
  EncodedBytes left_;
  size_t bits_;
  size_t count_;
  size_t done_ = 0;
};

}  // namespace lockstep::parquet
