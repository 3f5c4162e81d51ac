#include "data/reading/row_writer.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace lockstep {
namespace {

// Rows of neighbours in a batch lie in different blocks: each is a miss of the cache unless it is asked for
// some rows ahead. So many rows come to a cache behind the nearest one: with that, more of them are on their
// way at once.
constexpr size_t kRowsAhead = 32;
constexpr int kNotNearest = 1;
constexpr size_t kBytesAhead = 256;
constexpr size_t kLine = 64;

void ask_for(const std::byte* row, size_t bytes) {
  // Rows do not begin with a line.
  for (const std::byte* line = row - reinterpret_cast<uintptr_t>(row) % kLine; line < row + bytes;
       line += kLine)
    __builtin_prefetch(line, 0, kNotNearest);
}

}  // namespace

RowWriter::RowWriter(const RowLayout& layout, const CompactRows* compact, Batch& batch)
    : compact_(compact),
      batch_(batch),
      row_bytes_(static_cast<size_t>(compact != nullptr ? compact->row_bytes() : layout.row_bytes())) {
  for (size_t c = 0; c < layout.columns(); ++c)
    parts_.push_back({batch.mutable_data(c), static_cast<size_t>(layout.bytes(c)), layout.offset(c)});
}

void RowWriter::copy(std::span<const BlockCache::Wanted> rows) const {
  const size_t ahead = std::min(row_bytes_, kBytesAhead);
  std::vector<std::byte*> of_row(compact_ != nullptr ? parts_.size() : 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kRowsAhead < rows.size())
      if (const std::byte* next = rows[i + kRowsAhead].row) ask_for(next, ahead);
    if (rows[i].row != nullptr) copy_row(rows[i].row, rows[i].place, of_row);
  }
}

void RowWriter::copy(std::span<const PlacedRow> rows) const {
  for (const Part& part : parts_) {
    if (part.bytes == 4)
      for (const PlacedRow& row : rows)
        std::memcpy(part.to + row.place * size_t{4}, row.from + part.offset, 4);
    else
      for (const PlacedRow& row : rows)
        std::memcpy(part.to + row.place * part.bytes, row.from + part.offset, part.bytes);
  }
}

void RowWriter::copy_row(const std::byte* from, uint32_t row, std::vector<std::byte*>& of_row) const {
  if (compact_ != nullptr) {
    for (size_t c = 0; c < parts_.size(); ++c) of_row[c] = parts_[c].to + row * parts_[c].bytes;
    compact_->expand(from, of_row);
    return;
  }
  for (const Part& part : parts_) {
    // Single values are most columns; they take no call.
    if (part.bytes == 4)
      std::memcpy(part.to + row * size_t{4}, from + part.offset, 4);
    else
      std::memcpy(part.to + row * part.bytes, from + part.offset, part.bytes);
  }
}

void RowWriter::clear(uint32_t row) const {
  for (size_t c = 0; c < parts_.size(); ++c) {
    const Column& kind = batch_.columns()[c];
    const std::span<std::byte> bytes(parts_[c].to + row * parts_[c].bytes, parts_[c].bytes);
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    // Attention needs one key.
    if (kind.name == "keys_visible") bytes[0] = std::byte{1};
    const bool label = kind.name == "labels" || kind.name == "targets";
    if (kind.dtype != DType::kI32 || !label) continue;
    for (size_t at = 0; at < bytes.size(); at += sizeof kIgnoredLabel)
      std::memcpy(bytes.data() + at, &kIgnoredLabel, sizeof kIgnoredLabel);
  }
}

}  // namespace lockstep
