#include "data/parquet/parquet_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "data/format/column_block.h"
#include "data/format/value_text.h"
#include "data/parquet/decoder.h"
#include "data/parquet/thrift.h"

namespace lockstep {
namespace {

using parquet::FileLayout;
using parquet::FileMetadata;
using parquet::Leaf;
using parquet::RowRange;

constexpr int64_t kCacheMib = 256;

int64_t cache_bytes(const FormatOptions& options) {
  int64_t mib = kCacheMib;
  for (const auto& [key, value] : options.settings) {
    if (key != "page_cache") throw UserError("parquet has no setting '{}'; it has page_cache", key);
    const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), mib);
    if (failure != std::errc() || end != value.data() + value.size() || mib < 0 || mib > (1 << 24))
      throw UserError("the page_cache of parquet is '{}'; give a number of MiB, such as {}", value,
                      kCacheMib);
  }
  return mib << 20;
}

// Rows that cannot be read, and why.
struct BadRows {
  RowRange rows;
  int64_t offset = 0;
  std::string reason;
};

class ParquetFormat : public Format {
 public:
  ParquetFormat(const FormatOptions& options, const parquet::Limits& limits)
      : Format(options),
        limits_{limits.page_bytes, limits.page_values, memory_.get()},
        cache_(std::make_shared<parquet::PieceCache>(cache_bytes(options))) {}

  std::string_view name() const override { return "parquet"; }
  int version() const override { return 4; }
  std::string_view suffix() const override { return ".parquet"; }
  bool names_columns() const override { return true; }
  bool is_typed() const override { return true; }

  std::vector<std::pair<std::string, std::string>> unread(const ByteSource& shard) const override {
    std::vector<std::pair<std::string, std::string>> columns;
    for (const Leaf& leaf : parquet::read_metadata(shard).leaves)
      if (!leaf.left_out().empty()) columns.emplace_back(leaf.name, leaf.left_out());
    return columns;
  }

  std::vector<BlockField> fields(const ByteSource& shard) const override {
    const FileMetadata metadata = parquet::read_metadata(shard);
    std::vector<BlockField> fields;
    for (const size_t leaf : wanted(metadata, shard)) fields.push_back(metadata.leaves[leaf].field());
    return fields;
  }

  std::vector<BlockField> all_fields(std::span<const std::unique_ptr<ByteSource>> shards,
                                     const std::vector<std::string>& without) const override {
    for (const auto& shard : shards)
      for (const Leaf& leaf : parquet::read_metadata(*shard).leaves)
        if (!leaf.left_out().empty() &&
            std::none_of(without.begin(), without.end(), [&](const auto& name) { return leaf.is_of(name); }))
          throw UserError("{}: column '{}' {}", shard->name(), leaf.name, leaf.left_out());
    return Format::all_fields(shards, without);
  }

  ShardIndex index(const ByteSource& shard, const Progress& progress) const override {
    FileLayout layout{parquet::read_metadata(shard), {}, {}, limits_};
    layout.wanted = wanted(layout.metadata, shard);
    const bool skip = options().bad == BadRecords::kSkip;
    std::vector<BadRows> bad;
    int64_t row = 0;
    for (size_t g = 0; g < layout.metadata.groups.size(); ++g) {
      layout.pages.groups.push_back(find_group(shard, layout, g, row, skip, bad));
      if (skip) verify_group(shard, layout, g, row, bad);
      row += layout.metadata.groups[g].rows;
    }
    progress(shard.size());
    std::vector<BadRecord> left_out = merge(std::move(bad), layout.pages.bad);
    ShardIndex index = granules_of(layout.metadata, layout.pages.bad);
    index.bad = std::move(left_out);
    if (index.records == 0 && index.bad.empty()) throw UserError("{}: the file has no records", shard.name());
    index.extra = layout.pages.to_bytes();
    return index;
  }

  std::unique_ptr<ShardDecoder> open(const ByteSource& shard, const ShardIndex& index) const override {
    FileLayout layout{parquet::read_metadata(shard), {}, {}, limits_};
    layout.wanted = wanted(layout.metadata, shard);
    layout.pages = parquet::PageTable::parse(index.extra, layout.metadata.leaves.size());
    if (layout.pages.groups.size() != layout.metadata.groups.size())
      throw UserError("{}: the file has changed since it was indexed; start again", shard.name());
    return parquet::make_decoder(shard, index, std::move(layout), cache_);
  }

  bool use_memory(const std::shared_ptr<ByteBudget>& memory) const override {
    cache_->use_memory(memory);
    return true;
  }

 private:
  // The leaves to read, one per column of blocks.
  std::vector<size_t> wanted(const FileMetadata& metadata, const ByteSource& shard) const {
    std::vector<BlockField> held;
    std::vector<size_t> leaves;
    for (size_t i = 0; i < metadata.leaves.size(); ++i) {
      const Leaf& leaf = metadata.leaves[i];
      if (!leaf.left_out().empty() && !(leaf.refusal.empty() && is_named(leaf))) {
        refuse_if_wanted(leaf, shard);
        continue;
      }
      if (std::find_if(held.begin(), held.end(), [&](const BlockField& f) { return f.name == leaf.name; }) !=
          held.end())
        throw UserError("{}: two columns are called '{}'; rename one", shard.name(), leaf.name);
      held.push_back(leaf.field());
      leaves.push_back(i);
    }
    if (held.empty())
      throw UserError("{}: column '{}' {}", shard.name(), metadata.leaves[0].name,
                      metadata.leaves[0].left_out());
    std::vector<size_t> chosen = choose_columns(held, options().columns, shard.name());
    for (size_t& choice : chosen) choice = leaves[choice];
    return chosen;
  }

  void refuse_if_wanted(const Leaf& leaf, const ByteSource& shard) const {
    for (const BlockField& column : options().columns)
      if (leaf.is_of(column.name))
        throw UserError("{}: column '{}' {}", shard.name(), column.name, leaf.left_out());
  }
  bool is_named(const Leaf& leaf) const {
    return std::any_of(options().columns.begin(), options().columns.end(),
                       [&](const BlockField& column) { return column.name == leaf.name; });
  }

  // Where damage is skipped, columns that are not wanted cannot make records bad.
  std::vector<parquet::ChunkPages> find_group(const ByteSource& shard, const FileLayout& layout, size_t group,
                                              int64_t first_row, bool skip, std::vector<BadRows>& bad) const {
    const parquet::RowGroup& rows = layout.metadata.groups[group];
    std::vector<parquet::ChunkPages> pages(layout.metadata.leaves.size());
    for (size_t leaf = 0; leaf < pages.size(); ++leaf) {
      const Leaf& column = layout.metadata.leaves[leaf];
      const bool is_wanted =
          std::find(layout.wanted.begin(), layout.wanted.end(), leaf) != layout.wanted.end();
      if (!column.refusal.empty() || (skip && !is_wanted)) continue;
      try {
        pages[leaf] = parquet::find_pages(shard, rows.columns[leaf], column, rows.rows);
      } catch (const parquet::Damaged& damage) {
        const std::string reason =
            fmt::format("column '{}' of row group {} cannot be read: {}", column.name, group, damage.what());
        if (!skip) throw UserError("{} at byte {}: {}", shard.name(), rows.columns[leaf].offset, reason);
        bad.push_back({{first_row, rows.rows}, rows.columns[leaf].offset, reason});
      }
    }
    return pages;
  }

  // Decodes every wanted page, one at a time.
  void verify_group(const ByteSource& shard, const FileLayout& layout, size_t group, int64_t first_row,
                    std::vector<BadRows>& bad) const {
    FetchBuffers buffers;
    for (const size_t leaf : layout.wanted) {
      const parquet::ChunkPages& chunk = layout.pages.groups[group][leaf];
      if (chunk.firsts.empty()) continue;  // known to be damaged
      std::shared_ptr<const parquet::Dictionary> dictionary;
      const auto check = [&](const parquet::PieceKey& key, const RowRange& rows) {
        const std::vector<parquet::PageSpan> spans = layout.spans_of(key);
        const int64_t offset =
            spans.empty() ? layout.metadata.groups[group].columns[leaf].offset : spans[0].offset;
        buffers.reset();
        Fetch fetch(shard, buffers);
        std::vector<std::string_view> pages;
        for (const parquet::PageSpan& span : spans) pages.push_back(fetch.read(span.offset, span.bytes));
        try {
          const parquet::Piece decoded = parquet::decode_piece(shard, layout, key, pages, dictionary);
          if (key.is_dictionary()) {
            dictionary = decoded.dictionary;
          } else {
            BlockColumn column = make_column(layout.metadata.leaves[leaf].field());
            parquet::append_piece(shard, layout, key, decoded, 0, decoded.rows, column);
            for (const int64_t row : beyond_numbers(column))
              bad.push_back(
                  {{rows.first + row, 1},
                   offset,
                   fmt::format("column '{}' has a number that is not finite, or beyond 1e30", column.name)});
          }
          for (const int64_t row : decoded.bad_rows)
            bad.push_back({{rows.first + row, 1},
                           offset,
                           fmt::format("column '{}' is not valid UTF-8", layout.metadata.leaves[leaf].name)});
          return true;
        } catch (const UserError& error) {
          bad.push_back({rows, offset, error.what()});
          return false;
        }
      };
      const RowRange all{first_row, layout.metadata.groups[group].rows};
      const parquet::PieceKey of_all{.group = group, .leaf = leaf};
      if (chunk.dictionary.bytes > 0 && !check(of_all, all)) continue;
      for (int64_t page = 0; page < chunk.pieces(); ++page)
        check({.group = group, .leaf = leaf, .page = page},
              {first_row + chunk.firsts[static_cast<size_t>(page)], chunk.rows_of(page)});
    }
  }

  // The rows whose number no table takes.
  static std::vector<int64_t> beyond_numbers(const BlockColumn& column) {
    std::vector<int64_t> rows;
    std::visit(
        [&](const auto& values) {
          using T = typename std::decay_t<decltype(values)>::value_type;
          if constexpr (std::is_floating_point_v<T>)
            for (size_t r = 0; column.width == 1 && r < values.size(); ++r)
              if (std::fabs(static_cast<double>(values[r])) > kLargestNumber && !column.is_missing(r))
                rows.push_back(static_cast<int64_t>(r));
        },
        column.values);
    return rows;
  }

  // Rows may be bad in several columns; each counts once.
  static std::vector<BadRecord> merge(std::vector<BadRows> bad, std::vector<RowRange>& ranges) {
    std::stable_sort(bad.begin(), bad.end(), [](const BadRows& a, const BadRows& b) {
      return std::pair(a.rows.first, -a.rows.count) < std::pair(b.rows.first, -b.rows.count);
    });
    std::vector<BadRecord> records;
    int64_t covered = 0;
    for (const BadRows& part : bad) {
      const int64_t first = std::max(part.rows.first, covered);
      const int64_t count = part.rows.first + part.rows.count - first;
      if (count <= 0) continue;
      covered = first + count;
      if (!ranges.empty() && ranges.back().first + ranges.back().count == first)
        ranges.back().count += count;
      else
        ranges.push_back({first, count});
      records.push_back({part.offset, part.reason, count});
    }
    std::stable_sort(records.begin(), records.end(),
                     [](const BadRecord& a, const BadRecord& b) { return a.offset < b.offset; });
    return records;
  }

  // One for each row group.
  static ShardIndex granules_of(const FileMetadata& metadata, const std::vector<RowRange>& bad) {
    ShardIndex index{.granule = 0};
    int64_t end = 4;
    int64_t rows = 0;
    const auto records_before = [&](int64_t row) {
      int64_t records = row;
      for (const RowRange& range : bad) records -= std::clamp<int64_t>(row - range.first, 0, range.count);
      return records;
    };
    for (const parquet::RowGroup& group : metadata.groups) {
      int64_t begin = end;
      for (const parquet::ColumnChunk& chunk : group.columns) {
        begin = std::min(begin, chunk.offset);
        end = std::max(end, chunk.offset + chunk.bytes);
      }
      index.offsets.push_back(static_cast<uint64_t>(begin));
      index.firsts.push_back(records_before(rows));
      rows += group.rows;
    }
    index.offsets.push_back(static_cast<uint64_t>(end));
    index.records = records_before(rows);
    index.firsts.push_back(index.records);
    return index;
  }

  std::shared_ptr<BigMemory> memory_ = BigMemory::make();  // of unpacked pages
  parquet::Limits limits_;
  std::shared_ptr<parquet::PieceCache> cache_;
};

}  // namespace

std::unique_ptr<Format> make_parquet_format(const FormatOptions& options) {
  return make_parquet_format(options, {});
}

std::unique_ptr<Format> make_parquet_format(const FormatOptions& options, const parquet::Limits& limits) {
  return std::make_unique<ParquetFormat>(options, limits);
}

}  // namespace lockstep
