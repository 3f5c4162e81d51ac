#include "data/format/parquet/column_dictionaries.h"

#include <array>
#include <cstring>

#include "data/format/parquet/thrift.h"

namespace lockstep::parquet {
namespace {

// What a thread uses again and again.
struct Scratch {
  std::string stored;
  std::shared_ptr<PageBytes> unpacked = std::make_shared<PageBytes>(0);
};

Scratch& scratch() {
  thread_local Scratch all;
  return all;
}

}  // namespace

const EncodedDictionary& ColumnDictionaries::encoded(const EncodedColumn& column) {
  if (encoded_ != nullptr && encoded_leaf_ == column.leaf) return *encoded_;
  if (reading_.chunk_of(column).dictionary.bytes == 0)
    throw Damaged("it refers to a dictionary, and there is none");
  const auto make = [&] {
    Piece piece;
    piece.encoded = std::make_shared<const EncodedDictionary>(
        encode_dictionary(unpack(column), reading_.leaf_of(column).field(), column.places, reading_.encoding,
                          *reading_.cache.memory()));
    return piece;
  };
  encoded_ = reading_.cache.get(reading_.key_of(column, kDictionary), make)->encoded;
  encoded_leaf_ = column.leaf;
  return *encoded_;
}

size_t ColumnDictionaries::size(const EncodedColumn& column) {
  const auto known = stored(column);
  return known ? known->size : encoded(column).size;
}

bool ColumnDictionaries::read_few(const EncodedColumn& column, FewRows& few) {
  bool is_first = false;
  const auto known = stored(column, &is_first);
  if (known && known->singly) {
    check_picks(few.picks, known->size);
    mapped_ = reading_.chunk_of(column).dictionary.offset;
    if (read_entries(reading_.bytes, *known, few.picks, few.numbers)) return true;
  }
  // Encoding all entries is left to those who come after.
  if (is_first && keeps_stored(reading_.leaf_of(column))) unpack(column);
  if (unpacked_ == nullptr || unpacked_leaf_ != column.leaf || unpacked_->stored == nullptr) return false;
  check_picks(few.picks, unpacked_->size);
  const size_t width = width_of(reading_.leaf_of(column));
  few.numbers.resize(few.picks.size() * width);
  for (size_t i = 0; i < few.picks.size(); ++i)
    std::memcpy(few.numbers.data() + i * width, unpacked_->stored + few.picks[i] * width, width);
  return true;
}

std::shared_ptr<const StoredDictionary> ColumnDictionaries::stored(const EncodedColumn& column,
                                                                   bool* is_first) const {
  const PageSpan span = reading_.chunk_of(column).dictionary;
  std::array<PieceUse, 2> uses{PieceUse{reading_.key_of(column, kDictionary)},
                               PieceUse{reading_.key_of(column, kStoredDictionary)}};
  reading_.cache.find(uses);
  if (uses[0].piece || span.bytes == 0) return nullptr;
  if (uses[1].piece) return uses[1].piece->stored_dictionary;
  const auto find = [&] {
    if (is_first != nullptr) *is_first = true;
    Piece piece;
    piece.stored_dictionary = find_stored_dictionary(reading_.page_column(column), span);
    return piece;
  };
  return reading_.cache.get(uses[1].key, find)->stored_dictionary;
}

const Dictionary& ColumnDictionaries::unpack(const EncodedColumn& column) {
  const PageSpan span = reading_.chunk_of(column).dictionary;
  const std::string_view bytes =
      reading_.read(span.offset, static_cast<size_t>(span.bytes), scratch().stored);
  try {
    unpacked_ = decode_dictionary(bytes, reading_.leaf_of(column), reading_.codec_of(column),
                                  reading_.layout.limits, scratch().unpacked);
    unpacked_leaf_ = column.leaf;
    return *unpacked_;
  } catch (const Damaged& damage) {
    reading_.raise(column, kDictionary, damage);
  }
}

}  // namespace lockstep::parquet
