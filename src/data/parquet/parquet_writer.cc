#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "data/format/gathered_columns.h"
#include "data/format/value_text.h"
#include "data/parquet/metadata.h"
#include "data/parquet/parquet_format.h"
#include "data/parquet/thrift.h"

namespace lockstep {
namespace {

using parquet::Encoding;
using parquet::PageKind;
using parquet::Physical;
using parquet::ThriftType;
using parquet::ThriftWriter;

constexpr std::string_view kMagic = "PAR1";
constexpr size_t kGroupRecords = 1 << 16;
constexpr size_t kPageRecords = 1 << 13;
constexpr size_t kMostEntries = 1 << 14;  // of a dictionary
constexpr int64_t kUtf8 = 0;              // ConvertedType

Physical physical_of(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI32: return Physical::kInt32;
    case ValueType::kI64: return Physical::kInt64;
    case ValueType::kF32: return Physical::kFloat;
    case ValueType::kF64: return Physical::kDouble;
    case ValueType::kBytes: return Physical::kByteArray;
  }
  throw InternalError("no such type of values");
}

int codec_of(Codec compression) {
  switch (compression) {
    case Codec::kNone: return 0;
    case Codec::kSnappy: return 1;
    case Codec::kGzip: return 2;
    case Codec::kZstd: return 6;
    case Codec::kLz4: return 7;
  }
  throw InternalError("no such compression");
}

template <typename T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// Runs of equal numbers, and groups of eight packed ones between them.
void put_rle(std::string& out, const std::vector<uint32_t>& values, int bits) {
  const auto run_at = [&](size_t at) {
    size_t end = at;
    while (end < values.size() && values[end] == values[at]) ++end;
    return end - at;
  };
  const auto put_packed = [&](size_t begin, size_t end) {
    const size_t groups = (end - begin + 7) / 8;
    put_varint(out, groups << 1 | 1);
    uint64_t pending = 0;
    int held = 0;
    for (size_t i = begin; i < begin + groups * 8; ++i) {
      pending |= static_cast<uint64_t>(i < end ? values[i] : 0) << held;
      for (held += bits; held >= 8; held -= 8, pending >>= 8) out.push_back(static_cast<char>(pending));
    }
  };
  size_t packed = 0;  // where the values that are still to be packed begin
  for (size_t at = 0; at < values.size();) {
    const size_t run = run_at(at);
    // A run begins where the packed groups before it are full.
    const size_t fill = (8 - (at - packed) % 8) % 8;
    if (run < fill + 8) {
      at += run;
      continue;
    }
    at += fill;
    if (at > packed) put_packed(packed, at);
    put_varint(out, static_cast<uint64_t>(run - fill) << 1);
    for (int b = 0; b < bits; b += 8) out.push_back(static_cast<char>(values[at] >> b));
    at += run - fill;
    packed = at;
  }
  if (packed < values.size()) put_packed(packed, values.size());
}

// The bytes of one value, as PLAIN has them.
void put_plain(const BlockColumn& column, size_t record, std::string& out) {
  std::visit(
      [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        if constexpr (std::is_same_v<T, std::string_view>) {
          put(out, static_cast<uint32_t>(values[record].size()));
          out += values[record];
        } else if constexpr (std::is_same_v<T, uint8_t>) {
          put(out, static_cast<int32_t>(values[record]));
        } else {
          put(out, values[record]);
        }
      },
      column.values);
}

// The distinct values of some records, in the order in which they come; empty when there are too many to pay.
struct Entries {
  std::string values;
  size_t count = 0;
  std::vector<uint32_t> picks;  // one per record, 0 for a missing one
};

Entries entries_of(const BlockColumn& column, size_t first, size_t count) {
  Entries entries;
  std::unordered_map<std::string, uint32_t> known;
  std::string value;
  for (size_t r = first; r < first + count; ++r) {
    if (column.is_missing(r)) {
      entries.picks.push_back(0);
      continue;
    }
    value.clear();
    put_plain(column, r, value);
    const auto [found, added] = known.emplace(value, static_cast<uint32_t>(entries.count));
    entries.picks.push_back(found->second);
    if (!added) continue;
    entries.values += value;
    if (++entries.count > std::min(kMostEntries, count / 2 + 1)) return {};
  }
  return entries;
}

// What statistics say of the values of some records, in plain encoding without lengths. Long texts have no
// bounds, NaN is no bound, and a zero is written so that it bounds zeros of both signs.
ThriftWriter statistics_of(const BlockColumn& column, size_t first, size_t count) {
  constexpr size_t kLongestBound = 64;
  ThriftWriter statistics;
  int64_t missing = 0;
  for (size_t r = first; r < first + count; ++r) missing += column.is_missing(r) ? 1 : 0;
  statistics.integer(3, missing, ThriftType::kI64);
  std::visit(
      [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        std::optional<T> least, most;
        for (size_t r = first; r < first + count; ++r) {
          if (column.is_missing(r)) continue;
          if constexpr (std::is_floating_point_v<T>)
            if (std::isnan(values[r])) continue;
          if (!least || values[r] < *least) least = values[r];
          if (!most || *most < values[r]) most = values[r];
        }
        if (!least) return;
        std::string low, high;
        if constexpr (std::is_same_v<T, std::string_view>) {
          if (least->size() > kLongestBound || most->size() > kLongestBound) return;
          low = *least;
          high = *most;
        } else if constexpr (std::is_same_v<T, uint8_t>) {
          put(low, static_cast<int32_t>(*least));
          put(high, static_cast<int32_t>(*most));
        } else {
          if constexpr (std::is_floating_point_v<T>) {
            if (*least == 0) least = -T{0};
            if (*most == 0) most = T{0};
          }
          put(low, *least);
          put(high, *most);
        }
        statistics.binary(5, high).binary(6, low);
      },
      column.values);
  return statistics;
}

class ParquetWriter : public TableWriter {
 public:
  ParquetWriter(const std::vector<BlockField>& fields, const TableWriterOptions& options)
      : fields_(fields), options_(options), gathered_(fields), text_(fields.size(), true) {
    if (fields.empty()) throw UserError("a Parquet file needs at least one column");
    for (const BlockField& field : fields)
      if (field.width != 1)
        throw UserError(
            "column '{}' holds several values in a record, which this Parquet writer does not write; "
            "convert to block",
            field.name);
  }

  void append(const ColumnBlock& block, std::string& out) override {
    gathered_.append(block);
    size_t done = 0;
    for (; done + kGroupRecords <= gathered_.records(); done += kGroupRecords)
      write_group(done, kGroupRecords, out);
    gathered_.drop(done);
  }

  void finish(std::string& out) override {
    if (gathered_.records() > 0) write_group(0, gathered_.records(), out);
    begin(out);
    const std::string footer = metadata();
    put_bytes(footer, out);
    put(out, static_cast<uint32_t>(footer.size()));
    out += kMagic;
  }

 private:
  void begin(std::string& out) {
    if (offset_ == 0) put_bytes(kMagic, out);
  }
  void put_bytes(std::string_view bytes, std::string& out) {
    out += bytes;
    offset_ += static_cast<int64_t>(bytes.size());
  }

  void write_group(size_t first, size_t count, std::string& out) {
    begin(out);
    std::string columns;
    int64_t bytes = 0;
    for (size_t c = 0; c < fields_.size(); ++c) columns += write_column(c, first, count, bytes, out);
    groups_ += ThriftWriter()
                   .structures(1, fields_.size(), columns)
                   .integer(2, bytes, ThriftType::kI64)
                   .integer(3, static_cast<int64_t>(count), ThriftType::kI64)
                   .bytes();
    ++group_count_;
    records_ += static_cast<int64_t>(count);
  }

  // What one column chunk's pages come to.
  struct Sizes {
    int64_t uncompressed = 0;
    int64_t stored = 0;
  };

  void write_page(const ThriftWriter& described, PageKind kind, std::string_view body, Sizes& sizes,
                  std::string& out) {
    const std::string stored = compress(options_.compression, body);
    const auto crc = static_cast<int32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(stored.data()), static_cast<z_size_t>(stored.size())));
    const std::string header = ThriftWriter()
                                   .integer(1, static_cast<int64_t>(kind))
                                   .integer(2, static_cast<int64_t>(body.size()))
                                   .integer(3, static_cast<int64_t>(stored.size()))
                                   .integer(4, crc)
                                   .structure(kind == PageKind::kDictionary ? 7 : 5, described)
                                   .bytes();
    put_bytes(header, out);
    put_bytes(stored, out);
    sizes.uncompressed += static_cast<int64_t>(header.size() + body.size());
    sizes.stored += static_cast<int64_t>(header.size() + stored.size());
  }

  void write_data_page(const BlockColumn& column, size_t first, size_t count, const Entries& entries,
                       size_t in_group, Sizes& sizes, std::string& out) {
    std::vector<uint32_t> present(count);
    for (size_t r = 0; r < count; ++r) present[r] = !column.is_missing(first + r);
    std::string levels;
    put_rle(levels, present, 1);
    std::string body;
    put(body, static_cast<uint32_t>(levels.size()));
    body += levels;
    if (entries.count > 0) {
      std::vector<uint32_t> picks;
      for (size_t r = 0; r < count; ++r)
        if (present[r] != 0) picks.push_back(entries.picks[in_group + r]);
      const int bits = std::max(1, static_cast<int>(std::bit_width(entries.count - 1)));
      body.push_back(static_cast<char>(bits));
      put_rle(body, picks, bits);
    } else {
      for (size_t r = 0; r < count; ++r)
        if (present[r] != 0) put_plain(column, first + r, body);
    }
    ThriftWriter described;
    described.integer(1, static_cast<int64_t>(count))
        .integer(2, static_cast<int64_t>(entries.count > 0 ? Encoding::kRleDictionary : Encoding::kPlain))
        .integer(3, static_cast<int64_t>(Encoding::kRle))
        .integer(4, static_cast<int64_t>(Encoding::kRle));
    write_page(described, PageKind::kData, body, sizes, out);
  }

  // Returns what the footer says of the chunk.
  std::string write_column(size_t c, size_t first, size_t count, int64_t& bytes, std::string& out) {
    const BlockColumn& column = gathered_.columns()[c];
    if (const auto* texts = std::get_if<std::vector<std::string_view>>(&column.values))
      for (size_t r = first; r < first + count && text_[c]; ++r) text_[c] = is_utf8((*texts)[r]);
    const Entries entries = entries_of(column, first, count);
    Sizes sizes;
    const int64_t dictionary = offset_;
    if (entries.count > 0) {
      ThriftWriter described;
      described.integer(1, static_cast<int64_t>(entries.count))
          .integer(2, static_cast<int64_t>(Encoding::kPlain));
      write_page(described, PageKind::kDictionary, entries.values, sizes, out);
    }
    const int64_t data = offset_;
    for (size_t done = 0; done < count; done += kPageRecords)
      write_data_page(column, first + done, std::min(kPageRecords, count - done), entries, done, sizes, out);
    bytes += sizes.uncompressed;
    ThriftWriter metadata;
    metadata.integer(1, static_cast<int64_t>(physical_of(column.type())));
    if (entries.count > 0)
      metadata.integers(2, {static_cast<int>(Encoding::kPlain), static_cast<int>(Encoding::kRle),
                            static_cast<int>(Encoding::kRleDictionary)});
    else
      metadata.integers(2, {static_cast<int>(Encoding::kPlain), static_cast<int>(Encoding::kRle)});
    metadata.binaries(3, {column.name})
        .integer(4, codec_of(options_.compression))
        .integer(5, static_cast<int64_t>(count), ThriftType::kI64)
        .integer(6, sizes.uncompressed, ThriftType::kI64)
        .integer(7, sizes.stored, ThriftType::kI64)
        .integer(9, data, ThriftType::kI64);
    if (entries.count > 0) metadata.integer(11, dictionary, ThriftType::kI64);
    metadata.structure(12, statistics_of(column, first, count));
    return ThriftWriter().integer(2, dictionary, ThriftType::kI64).structure(3, metadata).bytes();
  }

  std::string metadata() const {
    std::string schema =
        ThriftWriter().binary(4, "schema").integer(5, static_cast<int64_t>(fields_.size())).bytes();
    for (size_t c = 0; c < fields_.size(); ++c) {
      ThriftWriter element;
      element.integer(1, static_cast<int64_t>(physical_of(fields_[c].type)))
          .integer(3, 1)  // optional
          .binary(4, fields_[c].name);
      if (fields_[c].type == ValueType::kBytes && text_[c])
        element.integer(6, kUtf8).structure(10, ThriftWriter().structure(1, ThriftWriter()));
      schema += element.bytes();
    }
    std::string orders;  // that of its type for each column
    for (size_t c = 0; c < fields_.size(); ++c) orders += ThriftWriter().structure(1, ThriftWriter()).bytes();
    return ThriftWriter()
        .integer(1, 2)
        .structures(2, fields_.size() + 1, schema)
        .integer(3, records_, ThriftType::kI64)
        .structures(4, group_count_, groups_)
        .binary(6, "lockstep")
        .structures(7, fields_.size(), orders)
        .bytes();
  }

  std::vector<BlockField> fields_;
  TableWriterOptions options_;
  GatheredColumns gathered_;
  std::vector<bool> text_;  // of each column: all values so far are valid UTF-8
  int64_t offset_ = 0;
  int64_t records_ = 0;
  std::string groups_;
  size_t group_count_ = 0;
};

}  // namespace

std::unique_ptr<TableWriter> make_parquet_writer(const std::vector<BlockField>& fields,
                                                 const TableWriterOptions& options) {
  return std::make_unique<ParquetWriter>(fields, options);
}

}  // namespace lockstep
