#include "data/format/parquet/encoded_dictionary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "data/format/parquet/thrift.h"

namespace lockstep::parquet {
namespace {

// Entries that stay in the nearest cache between being taken and being encoded.
constexpr size_t kAtOnce = 1024;

// Values `first` to `first + count` of the dictionary as a column.
void take_entries(const Dictionary& dictionary, size_t first, size_t count, BlockColumn& column) {
  std::visit(
      [&](auto& out) {
        using Values = std::decay_t<decltype(out)>;
        using T = typename Values::value_type;
        if constexpr (std::is_arithmetic_v<T>) {
          if (dictionary.stored != nullptr) {
            out.resize(count);
            std::memcpy(out.data(), dictionary.stored + first * sizeof(T), count * sizeof(T));
            return;
          }
        }
        const auto& held = std::get<Values>(dictionary.values);
        const auto from = held.begin() + static_cast<int64_t>(first);
        out.assign(from, from + static_cast<int64_t>(count));
      },
      column.values);
}

// A dictionary's values may be kept narrower than the column's.
BlockField field_of(const Dictionary& dictionary, BlockField field) {
  if (dictionary.stored == nullptr) field.type = static_cast<ValueType>(dictionary.values.index());
  return field;
}

}  // namespace

EncodedDictionary encode_dictionary(const Dictionary& dictionary, const BlockField& field,
                                    const std::vector<size_t>& places, const RowEncoding& encoding,
                                    BigMemory& memory) {
  EncodedDictionary encoded{.size = dictionary.size, .refused = !dictionary.bad.empty(), .places = {}};
  encoded.places.resize(places.size());
  for (EncodedDictionary::Place& place : encoded.places) {
    place.memory = memory.take(dictionary.size * sizeof(uint32_t));
    place.entries = reinterpret_cast<uint32_t*>(place.memory.data());
  }
  BlockColumn some = make_column(field_of(dictionary, field));
  for (size_t done = 0; done < dictionary.size && !encoded.refused; done += kAtOnce) {
    const size_t here = std::min(kAtOnce, dictionary.size - done);
    take_entries(dictionary, done, here, some);
    for (size_t p = 0; p < places.size(); ++p) {
      const std::span out(encoded.places[p].entries + done, here);
      if (!encoding.encode(places[p], some, std::as_writable_bytes(out))) encoded.refused = true;
    }
  }
  BlockColumn missing = make_column(field);
  std::visit([](auto& values) { values.resize(1); }, missing.values);
  missing.missing = {1};
  for (size_t p = 0; p < places.size(); ++p) {
    uint32_t value = 0;
    if (encoding.encode(places[p], missing, std::as_writable_bytes(std::span(&value, 1))))
      encoded.places[p].missing = value;
  }
  return encoded;
}

void check_pick(uint32_t pick, size_t size) {
  if (pick >= size) throw Damaged(fmt::format("it refers to entry {} of a dictionary of {}", pick, size));
}

void check_picks(std::span<const uint32_t> picks, size_t size) {
  for (const uint32_t pick : picks) check_pick(pick, size);
}

}  // namespace lockstep::parquet
