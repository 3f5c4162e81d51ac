#include "data/block/block_layout.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "data/bytes/byte_source.h"

namespace lockstep {
namespace {

constexpr int64_t kMostFooterBytes = int64_t{1} << 32;
constexpr int64_t kMostColumns = 1 << 16;

template <typename T>
void put(std::string& out, T value) {
  static_assert(std::is_integral_v<T>);
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

class FooterReader {
 public:
  FooterReader(const ByteSource& file, std::string_view bytes, int64_t offset)
      : file_(file), left_(bytes), end_(offset + static_cast<int64_t>(bytes.size())) {}

  template <typename T>
  T number() {
    T value{};
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string text() { return std::string(take(number<uint32_t>())); }
  size_t left() const { return left_.size(); }

  [[noreturn]] void refuse(std::string_view problem) const {
    throw UserError("{} at byte {}: {}; the footer is damaged, write the file again", file_.name(),
                    end_ - static_cast<int64_t>(left_.size()), problem);
  }

 private:
  std::string_view take(size_t count) {
    if (count > left_.size()) refuse("it ends too early");
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }

  const ByteSource& file_;
  std::string_view left_;
  int64_t end_;
};

constexpr size_t kChunkEntry = 1 + 4 + 4 + 8;

void read_fields(FooterReader& reader, BlockFooter& footer) {
  const auto columns = reader.number<uint32_t>();
  if (columns == 0 || columns > kMostColumns) reader.refuse(fmt::format("{} columns", columns));
  for (uint32_t i = 0; i < columns; ++i) {
    BlockField field;
    field.name = reader.text();
    const auto type = reader.number<uint8_t>();
    if (type > static_cast<uint8_t>(ValueType::kBytes)) reader.refuse(fmt::format("type {}", type));
    field.type = static_cast<ValueType>(type);
    field.width = reader.number<int64_t>();
    if (field.width != kVarying && (field.width < 1 || field.width > kMostChunkBytes))
      reader.refuse(fmt::format("{} values in each record of '{}'", field.width, field.name));
    footer.fields.push_back(std::move(field));
  }
}

void read_blocks(FooterReader& reader, int64_t footer_offset, BlockFooter& footer) {
  footer.block_records = reader.number<int64_t>();
  const auto blocks = reader.number<uint64_t>();
  if (footer.block_records < 1 || footer.block_records > kMostChunkBytes)
    reader.refuse(fmt::format("{} records in a block", footer.block_records));
  if (blocks > reader.left() / (4 + kChunkEntry * footer.fields.size()))
    reader.refuse(fmt::format("{} blocks", blocks));
  int64_t offset = static_cast<int64_t>(kBlockMagic.size());
  for (uint64_t b = 0; b < blocks; ++b) {
    StoredBlock block{reader.number<uint32_t>(), offset, {}};
    const bool fits = b + 1 == blocks ? block.records >= 1 && block.records <= footer.block_records
                                      : block.records == footer.block_records;
    if (!fits) reader.refuse(fmt::format("{} records in block {}", block.records, b));
    for (size_t c = 0; c < footer.fields.size(); ++c) {
      const auto compression = reader.number<uint8_t>();
      if (compression > static_cast<uint8_t>(Codec::kLz4))
        reader.refuse(fmt::format("compression {}", compression));
      StoredChunk chunk{static_cast<Codec>(compression), offset};
      chunk.stored = reader.number<uint32_t>();
      chunk.raw = reader.number<uint32_t>();
      chunk.hash = reader.number<uint64_t>();
      if (chunk.raw > kMostChunkBytes) reader.refuse(fmt::format("a chunk of {} bytes", chunk.raw));
      offset += chunk.stored;
      block.chunks.push_back(chunk);
    }
    footer.blocks.push_back(std::move(block));
  }
  if (offset != footer_offset)
    reader.refuse(
        fmt::format("the blocks end at byte {}, and the footer begins at {}", offset, footer_offset));
  if (reader.left() != 0) reader.refuse("it goes on after the last block");
}

// The parts of a chunk that is not compressed.
class ChunkReader {
 public:
  explicit ChunkReader(std::string_view raw) : left_(raw) {}

  std::string_view take(uint64_t count) {
    if (count > left_.size()) throw UserError("a column ends too early");
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  std::string_view take(uint64_t count, uint64_t each) {
    if (count > left_.size() / each) throw UserError("a column ends too early");
    return take(count * each);
  }
  std::string_view rest() const { return left_; }

 private:
  std::string_view left_;
};

uint32_t number_at(std::string_view numbers, uint64_t index) {
  uint32_t value = 0;
  std::memcpy(&value, numbers.data() + index * 4, 4);
  return value;
}

uint64_t sum_of(std::string_view numbers, uint64_t first, uint64_t count) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) sum += number_at(numbers, first + i);
  return sum;
}

void append_texts(ChunkReader& reader, uint64_t all, uint64_t first, uint64_t count,
                  std::vector<std::string_view>& values) {
  const std::string_view lengths = reader.take(all, 4);
  const std::string_view bytes = reader.rest();
  if (sum_of(lengths, 0, all) != bytes.size()) throw UserError("the lengths of a column do not add up");
  uint64_t at = sum_of(lengths, 0, first);
  values.reserve(values.size() + count);
  for (uint64_t i = first; i < first + count; ++i) {
    const uint32_t length = number_at(lengths, i);
    values.push_back(bytes.substr(at, length));
    at += length;
  }
}

}  // namespace

int64_t StoredBlock::end() const { return chunks.back().offset + chunks.back().stored; }

int64_t BlockFooter::records() const {
  return blocks.empty() ? 0
                        : (static_cast<int64_t>(blocks.size()) - 1) * block_records + blocks.back().records;
}

uint64_t chunk_hash(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string to_bytes(const BlockFooter& footer) {
  std::string out;
  put(out, static_cast<uint32_t>(footer.fields.size()));
  for (const BlockField& field : footer.fields) {
    put(out, static_cast<uint32_t>(field.name.size()));
    out += field.name;
    put(out, static_cast<uint8_t>(field.type));
    put(out, field.width);
  }
  put(out, footer.block_records);
  put(out, static_cast<uint64_t>(footer.blocks.size()));
  for (const StoredBlock& block : footer.blocks) {
    put(out, block.records);
    for (const StoredChunk& chunk : block.chunks) {
      put(out, static_cast<uint8_t>(chunk.compression));
      put(out, chunk.stored);
      put(out, chunk.raw);
      put(out, chunk.hash);
    }
  }
  const uint64_t hash = chunk_hash(out);
  put(out, static_cast<uint64_t>(out.size()));
  put(out, hash);
  return out.append(kBlockMagic);
}

BlockFooter read_block_footer(const ByteSource& file) {
  const int64_t magic = static_cast<int64_t>(kBlockMagic.size());
  const int64_t most = file.size() - magic - kBlockTrailerBytes;
  if (most < 0) throw UserError("{}: {} bytes are too few for a block file", file.name(), file.size());
  std::string head(kBlockMagic.size(), '\0');
  std::string trailer(static_cast<size_t>(kBlockTrailerBytes), '\0');
  file.read(0, head);
  if (head != kBlockMagic) {
    if (head.starts_with(kBlockMagic.substr(0, kBlockMagic.size() - 1)))
      throw UserError(
          "{}: a block file of version {}; this program reads version 1, convert it with the one "
          "that wrote it",
          file.name(), head.back());
    throw UserError("{}: not a block file; make one with: lockstep data convert SOURCE --to block",
                    file.name());
  }
  file.read(file.size() - kBlockTrailerBytes, trailer);
  if (!trailer.ends_with(kBlockMagic))
    throw UserError("{}: the file ends at byte {} without its footer; it was cut, write it again",
                    file.name(), file.size());
  uint64_t size = 0;
  uint64_t hash = 0;
  std::memcpy(&size, trailer.data(), 8);
  std::memcpy(&hash, trailer.data() + 8, 8);
  if (size > static_cast<uint64_t>(std::min(most, kMostFooterBytes)))
    throw UserError("{} at byte {}: a footer of {} bytes does not fit in the file; it is damaged",
                    file.name(), file.size() - kBlockTrailerBytes, size);
  const int64_t offset = file.size() - kBlockTrailerBytes - static_cast<int64_t>(size);
  std::string bytes(size, '\0');
  file.read(offset, bytes);
  if (chunk_hash(bytes) != hash)
    throw UserError("{} at byte {}: the footer's hash is wrong; the file is damaged, write it again",
                    file.name(), offset);
  FooterReader reader(file, bytes, offset);
  BlockFooter footer;
  read_fields(reader, footer);
  read_blocks(reader, offset, footer);
  return footer;
}

std::string encode_chunk(const BlockColumn& column, size_t first, size_t count) {
  std::string out;
  const bool varying = column.width == kVarying;
  bool some_missing = false;
  for (size_t r = first; r < first + count; ++r) some_missing = some_missing || column.is_missing(r);
  put(out, static_cast<uint8_t>(some_missing));
  if (some_missing) out.append(reinterpret_cast<const char*>(column.missing.data()) + first, count);
  const auto end_of = [&](size_t record) {
    return record == 0 ? size_t{0} : static_cast<size_t>(column.ends[record - 1]);
  };
  const size_t width = varying ? 0 : static_cast<size_t>(column.width);
  const size_t begin = varying ? end_of(first) : first * width;
  const size_t end = varying ? end_of(first + count) : (first + count) * width;
  if (varying)
    for (size_t r = first; r < first + count; ++r) put(out, static_cast<uint32_t>(end_of(r + 1) - end_of(r)));
  std::visit(
      [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        if constexpr (std::is_same_v<T, std::string_view>) {
          for (size_t i = begin; i < end; ++i) {
            if (values[i].size() > kMostChunkBytes)
              throw UserError("column '{}' has a value of {} bytes; a block file holds up to 1 GiB",
                              column.name, values[i].size());
            put(out, static_cast<uint32_t>(values[i].size()));
          }
          for (size_t i = begin; i < end; ++i) out.append(values[i]);
        } else {
          out.append(reinterpret_cast<const char*>(values.data() + begin), (end - begin) * sizeof(T));
        }
      },
      column.values);
  if (out.size() > kMostChunkBytes)
    throw UserError("column '{}' takes {} bytes in a block of {} records; a block file holds up to 1 GiB",
                    column.name, out.size(), count);
  return out;
}

void decode_chunk(std::string_view raw, int64_t records, int64_t first, int64_t count, BlockColumn& column) {
  const auto all = static_cast<uint64_t>(records);
  const auto from = static_cast<uint64_t>(first);
  const auto number = static_cast<uint64_t>(count);
  const bool varying = column.width == kVarying;
  const auto width = static_cast<uint64_t>(varying ? 0 : column.width);
  const size_t before = varying ? column.ends.size()
                                : std::visit([](const auto& v) { return v.size(); }, column.values) / width;
  ChunkReader reader(raw);
  const char flags = reader.take(1)[0];
  if (flags != 0 && flags != 1) throw UserError("a column has flags {}", static_cast<int>(flags));
  if (flags == 1) {
    const std::string_view marks = reader.take(all).substr(from, number);
    column.missing.resize(before);
    for (const char mark : marks) column.missing.push_back(mark != 0);
  } else if (!column.missing.empty()) {
    column.missing.resize(before + number);
  }
  uint64_t all_values = all * width;
  uint64_t begin = from * width;
  uint64_t values_here = number * width;
  if (varying) {
    const std::string_view counts = reader.take(all, 4);
    all_values = sum_of(counts, 0, all);
    begin = sum_of(counts, 0, from);
    values_here = 0;
    for (uint64_t i = from; i < from + number; ++i) {
      values_here += number_at(counts, i);
      column.ends.push_back((column.ends.empty() ? 0 : column.ends.back()) + number_at(counts, i));
    }
  }
  std::visit(
      [&](auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        if constexpr (std::is_same_v<T, std::string_view>) {
          append_texts(reader, all_values, begin, values_here, values);
        } else {
          const std::string_view bytes = reader.take(all_values, sizeof(T));
          if (!reader.rest().empty()) throw UserError("a column goes on after its last value");
          const size_t at = values.size();
          values.resize(at + values_here);
          if (values_here > 0)
            std::memcpy(values.data() + at, bytes.data() + begin * sizeof(T), values_here * sizeof(T));
        }
      },
      column.values);
}

}  // namespace lockstep
