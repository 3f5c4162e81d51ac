// The loops of rows that are made of columns: looking up entries, and turning columns into rows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::parquet {

// Reads them, so that they are in a near cache.
void bring_near(const uint32_t* entries, size_t count);

// out[i] = entries[picks[i]]. Meanwhile the entries that `next` picks are asked for from memory.
void pick_entries(const uint32_t* entries, std::span<const uint32_t> picks, std::span<const uint32_t> next,
                  uint32_t* out);

// Columns of four-byte values, each `apart` values behind the one before, as `width` neighbours in each of
// `count` rows.
void put_into_rows(const uint32_t* columns, size_t apart, size_t width, size_t count, std::byte* rows,
                   size_t row_bytes);

}  // namespace lockstep::parquet
