// The encodings of Parquet: how the values of a page are written. All of them stop at the end of what they
// are given and throw Damaged where it does not hold what is claimed.
//
// Bytes to decode are followed by at least kReadPast readable ones, so that words can be loaded across the
// end.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/format/column_block.h"
#include "data/format/parquet/metadata.h"

namespace lockstep::parquet {

inline constexpr size_t kReadPast = 16;

// `count` numbers of `bits` bits each in runs and bit-packed groups (levels, dictionary indices, booleans).
void decode_rle(std::string_view bytes, int bits, size_t count, std::vector<uint32_t>& out);
// Sums of packed differences. Returns how many bytes they took.
size_t decode_delta(std::string_view bytes, size_t count, std::vector<int64_t>& out);

// `count` values as they lie, without dictionary; texts are views of the bytes or of `heap`.
struct PlainValues {
  ColumnValues values;
  std::shared_ptr<std::string> heap;
};
PlainValues decode_values(Encoding encoding, const Leaf& leaf, std::string_view bytes, size_t count);

std::string_view name_of(Encoding encoding);

}  // namespace lockstep::parquet
