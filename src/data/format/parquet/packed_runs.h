// PackedRuns: small numbers as Parquet stores them in runs and bit-packed groups (dictionary indices), of
// which any stretch can be taken out without the others.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep::parquet {

// Numbers [first, first + count) of a row of packed ones of 1 to 32 bits; 16 bytes behind the last can be
// read.
void unpack_bits(const char* bytes, size_t first, size_t count, int bits, uint32_t* out);

class PackedRuns {
 public:
  // `count` numbers, each below `known`. The bytes stay where they are, and 16 behind them can be read.
  // Throws Damaged.
  PackedRuns(std::string_view bytes, int bits, size_t count, size_t known);

  // Numbers [first, first + count).
  void copy(size_t first, size_t count, uint32_t* out) const;
  size_t bytes() const { return runs_.size() * sizeof(Run); }

 private:
  struct Run {
    const char* bytes;  // packed numbers; null: all are `value`
    uint32_t first;     // of its numbers
    uint32_t value;
  };

  void add_run(const Run& run, size_t count, size_t known);

  int bits_;
  size_t count_;
  std::vector<Run> runs_;  // in their order
};

// Whether all of `count` numbers are `value`, in so few runs that it can be seen at once.
bool is_run_of(std::string_view bytes, int bits, size_t count, uint32_t value);

}  // namespace lockstep::parquet
