#include "data/parquet/page_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "data/parquet/thrift.h"

namespace lockstep::parquet {
namespace {

void put(std::string& out, int64_t value) {
  std::array<char, 8> bytes;
  std::memcpy(bytes.data(), &value, 8);
  out.append(bytes.data(), bytes.size());
}

class TableReader {
 public:
  explicit TableReader(std::string_view bytes) : left_(bytes) {}
  int64_t number() {
    if (left_.size() < 8) throw UserError("the index of a Parquet file ends too early");
    int64_t value = 0;
    std::memcpy(&value, left_.data(), 8);
    left_.remove_prefix(8);
    return value;
  }
  size_t count(size_t each) {
    const int64_t value = number();
    if (value < 0 || static_cast<uint64_t>(value) > left_.size() / (8 * each))
      throw UserError("the index of a Parquet file is damaged");
    return static_cast<size_t>(value);
  }

 private:
  std::string_view left_;
};

// Most headers are short; statistics make some long.
PageHeader header_at(const ByteSource& file, int64_t offset, int64_t end) {
  constexpr int64_t kShort = 256;
  constexpr int64_t kLong = 1 << 20;
  std::string bytes(static_cast<size_t>(std::min(kShort, end - offset)), '\0');
  file.read(offset, bytes);
  try {
    return parse_page_header(bytes);
  } catch (const Damaged&) {
    if (end - offset <= kShort) throw;
  }
  bytes.resize(static_cast<size_t>(std::min(kLong, end - offset)));
  file.read(offset, bytes);
  return parse_page_header(bytes);
}

}  // namespace

std::string PageTable::to_bytes() const {
  std::string out;
  put(out, static_cast<int64_t>(groups.size()));
  for (const std::vector<ChunkPages>& group : groups) {
    for (const ChunkPages& chunk : group) {
      put(out, chunk.dictionary.offset);
      put(out, chunk.dictionary.bytes);
      put(out, static_cast<int64_t>(chunk.pages.size()));
      for (const PageSpan& page : chunk.pages) {
        put(out, page.offset);
        put(out, page.bytes);
      }
      put(out, static_cast<int64_t>(chunk.firsts.size()));
      for (const int64_t first : chunk.firsts) put(out, first);
    }
  }
  put(out, static_cast<int64_t>(bad.size()));
  for (const RowRange& range : bad) {
    put(out, range.first);
    put(out, range.count);
  }
  return out;
}

PageTable PageTable::parse(std::string_view bytes, size_t leaves) {
  TableReader reader(bytes);
  PageTable table;
  table.groups.resize(reader.count(leaves));
  for (std::vector<ChunkPages>& group : table.groups) {
    group.resize(leaves);
    for (ChunkPages& chunk : group) {
      chunk.dictionary.offset = reader.number();
      chunk.dictionary.bytes = reader.number();
      chunk.pages.resize(reader.count(2));
      for (PageSpan& page : chunk.pages) {
        page.offset = reader.number();
        page.bytes = reader.number();
      }
      chunk.firsts.resize(reader.count(1));
      for (int64_t& first : chunk.firsts) first = reader.number();
    }
  }
  table.bad.resize(reader.count(2));
  for (RowRange& range : table.bad) {
    range.first = reader.number();
    range.count = reader.number();
  }
  return table;
}

ChunkPages find_pages(const ByteSource& file, const ColumnChunk& chunk, const Leaf& leaf, int64_t rows) {
  ChunkPages found;
  int64_t values = 0;
  const int64_t end = chunk.offset + chunk.bytes;
  for (int64_t at = chunk.offset; at < end;) {
    const PageHeader header = header_at(file, at, end);
    const PageSpan span{at, static_cast<int64_t>(header.header_bytes) + header.stored};
    if (span.bytes > end - at)
      throw Damaged(fmt::format("the page at byte {} goes on behind its column", at));
    at += span.bytes;
    if (header.kind == PageKind::kDictionary) {
      if (found.dictionary.bytes > 0 || !found.pages.empty()) throw Damaged("a second dictionary");
      found.dictionary = span;
    }
    if (header.kind != PageKind::kData && header.kind != PageKind::kDataV2) continue;
    if (!leaf.list() && header.values > 0) found.firsts.push_back(values);
    if (header.values > 0) found.pages.push_back(span);
    values += header.values;
  }
  if (values != chunk.values)
    throw Damaged(fmt::format("its pages hold {} values instead of {}", values, chunk.values));
  if (leaf.list() && rows > 0) found.firsts.push_back(0);
  if (!leaf.list() && values != rows)
    throw Damaged(fmt::format("its pages hold {} values, and the row group {} rows", values, rows));
  found.firsts.push_back(rows);
  return found;
}

}  // namespace lockstep::parquet
