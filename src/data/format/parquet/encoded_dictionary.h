// EncodedDictionary: the entries of a dictionary as they lie at places of rows, so that a row takes a look
// into it and no arithmetic.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/big_memory.h"
#include "data/format/parquet/pages.h"
#include "data/format/row_encoding.h"

namespace lockstep::parquet {

struct EncodedDictionary {
  size_t size = 0;
  bool refused = false;  // an entry cannot be encoded; it may be that no row has it
  struct Place {
    BigBytes memory = {};
    uint32_t* entries = nullptr;           // in it
    std::optional<uint32_t> missing = {};  // a row without a value; nothing: it cannot be encoded
  };
  std::vector<Place> places;  // those that the column has

  int64_t bytes() const { return static_cast<int64_t>(places.size() * size * sizeof(uint32_t)); }
};

// For these places of rows.
EncodedDictionary encode_dictionary(const Dictionary& dictionary, const BlockField& field,
                                    const std::vector<size_t>& places, const RowEncoding& encoding,
                                    BigMemory& memory);

// Throw Damaged where one is not below the size of its dictionary.
void check_pick(uint32_t pick, size_t size);
void check_picks(std::span<const uint32_t> picks, size_t size);

}  // namespace lockstep::parquet
