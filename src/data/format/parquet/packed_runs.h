// PackedRuns: small numbers as Parquet stores them in runs and bit-packed groups (dictionary indices), of
// which any stretch can be taken out without the others.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep::parquet {

// Numbers [first, first + count) of a row of packed ones of 1 to 32 bits, and the largest of them, or 0; 16
// bytes behind the last can be read.
uint32_t unpack_bits(const char* bytes, size_t first, size_t count, int bits, uint32_t* out);

class PackedRuns {
 public:
  // `count` numbers, each below `known`, in less than 4 GiB. Throws Damaged. The bytes are not kept: whoever
  // wants numbers has them.
  PackedRuns(std::string_view bytes, int bits, size_t count, size_t known);
  // The same without looking at numbers that are packed: they have to be checked where they are used.
  PackedRuns(std::string_view bytes, int bits, size_t count) : PackedRuns(bytes, bits, count, kUnchecked) {}

  // Numbers [first, first + count), and the largest of them, or 0. Those of `bytes` that are in extent() are
  // needed, and 16 behind them can be read.
  uint32_t copy(const char* bytes, size_t first, size_t count, uint32_t* out) const;
  struct Extent {
    size_t begin, end;
  };
  Extent extent(size_t first, size_t count) const;
  size_t bytes() const { return runs_.size() * sizeof(Run); }

 private:
  static constexpr size_t kUnchecked = SIZE_MAX;
  static constexpr uint32_t kRepeated = UINT32_MAX;
  struct Run {
    uint32_t first;  // of its numbers
    uint32_t at;     // where they are packed; kRepeated: all are `value`
    uint32_t value;
  };

  void add_run(const char* bytes, const Run& run, size_t count, size_t known);
  std::vector<Run>::const_iterator run_of(size_t number) const;
  size_t end_of(std::vector<Run>::const_iterator run) const {
    return run + 1 == runs_.end() ? count_ : size_t{(run + 1)->first};
  }

  int bits_;
  size_t count_;
  std::vector<Run> runs_;  // in their order
};

// Whether all of `count` numbers are `value`, in so few runs that it can be seen at once.
bool is_run_of(std::string_view bytes, int bits, size_t count, uint32_t value);

}  // namespace lockstep::parquet
