#include "data/block/block_format.h"

#include <algorithm>

#include "base/error.h"
#include "data/block/block_layout.h"
#include "data/format/column_block.h"

namespace lockstep {
namespace {

// Chunks closer than this are read at once: a short gap costs less than another read.
constexpr int64_t kGap = 16 << 10;

// Says what is wrong with a stored chunk; empty: nothing.
std::string problem_of(const StoredChunk& chunk, std::string_view stored, std::string_view column) {
  if (chunk_hash(stored) == chunk.hash) return {};
  return fmt::format("the hash of column '{}' is wrong; the file is damaged or has changed, write it again",
                     column);
}

class BlockDecoder : public ShardDecoder {
 public:
  BlockDecoder(const ByteSource& shard, const ShardIndex& index, BlockFooter footer,
               std::vector<size_t> wanted)
      : ShardDecoder(shard, index), footer_(std::move(footer)), wanted_(std::move(wanted)) {
    for (size_t b = 0; b < footer_.blocks.size(); ++b)
      if (!index.is_bad(footer_.blocks[b].offset)) kept_.push_back(b);
    if (index.granules() != static_cast<int64_t>(kept_.size()))
      throw UserError("{}: {} blocks, but {} when it was indexed; the file has changed, start again",
                      shard.name(), footer_.blocks.size(), index.granules());
  }

  // What must be read of the file: chunks that lie together at once.
  std::vector<GranuleSpan> spans(int64_t first, int64_t count) const {
    std::vector<GranuleSpan> spans;
    for_each_chunk(first, count, [&](const StoredChunk& chunk, size_t, const Part& part) {
      if (joins(spans, chunk))
        spans.back().bytes = chunk.offset + chunk.stored - spans.back().offset;
      else
        spans.push_back({chunk.offset, chunk.stored, part.first});
    });
    return spans;
  }

  void decode(Fetch& fetch, int64_t first, int64_t count, ColumnBlock& block) const override {
    const std::vector<GranuleSpan> spans = this->spans(first, count);
    const std::vector<std::string_view> fetched = fetch.all(spans);
    size_t span = 0;
    for_each_chunk(first, count, [&](const StoredChunk& chunk, size_t column, const Part& part) {
      while (chunk.offset + chunk.stored > spans[span].offset + spans[span].bytes) ++span;
      const std::string_view stored =
          fetched[span].substr(static_cast<size_t>(chunk.offset - spans[span].offset), chunk.stored);
      decode_part(chunk, stored, part, wanted_[column], block.columns[column], block);
    });
    block.records += count;
  }

  std::string describe(int64_t record) const override {
    const int64_t granule = index().granule_of(record);
    const size_t block = kept_[static_cast<size_t>(granule)];
    return fmt::format(
        "{} record {} (block {} at byte {})", bytes().name(),
        static_cast<int64_t>(block) * footer_.block_records + record - index().first_of(granule), block,
        footer_.blocks[block].offset);
  }

 private:
  // Some consecutive records of a block.
  struct Part {
    size_t block = 0;
    int64_t first = 0;  // in the block
    int64_t count = 0;
  };

  static bool joins(const std::vector<GranuleSpan>& spans, const StoredChunk& chunk) {
    return !spans.empty() && chunk.offset >= spans.back().offset &&
           chunk.offset - spans.back().offset - spans.back().bytes <= kGap;
  }

  // By offset, so that spans() and decode() walk the same way.
  template <typename Take>
  void for_each_chunk(int64_t first, int64_t count, const Take& take) const {
    for (const int64_t end = first + count; first < end;) {
      const int64_t granule = index().granule_of(first);
      const int64_t begin = index().first_of(granule);
      const Part part{kept_[static_cast<size_t>(granule)], first - begin,
                      std::min(end, index().first_of(granule + 1)) - first};
      for (const size_t column : by_offset_)
        take(footer_.blocks[part.block].chunks[wanted_[column]], column, part);
      first += part.count;
    }
  }

  void decode_part(const StoredChunk& chunk, std::string_view stored, const Part& part, size_t field,
                   BlockColumn& column, ColumnBlock& block) const {
    const std::string& name = footer_.fields[field].name;
    const auto refuse = [&](std::string_view problem) {
      throw UserError("{} at byte {} (block {}): {}", bytes().name(), chunk.offset, part.block, problem);
    };
    if (const std::string problem = problem_of(chunk, stored, name); !problem.empty()) refuse(problem);
    const bool text = column.type() == ValueType::kBytes;
    std::string_view raw = stored;
    if (chunk.compression != Codec::kNone || chunk.raw != chunk.stored) {
      thread_local std::string scratch;
      std::shared_ptr<std::string> kept = text ? std::make_shared<std::string>() : nullptr;
      std::string& out = text ? *kept : scratch;
      const bool may = may_unpack_to(chunk.compression, stored, chunk.raw);
      if (may) out.resize(chunk.raw);
      if (!may || !decompress(chunk.compression, stored, out))
        refuse(fmt::format("column '{}' does not unpack to the {} bytes that the footer claims", name,
                           chunk.raw));
      raw = out;
      if (text) block.keep.push_back(std::move(kept));
    }
    try {
      decode_chunk(raw, footer_.blocks[part.block].records, part.first, part.count, column);
    } catch (const UserError& error) {
      refuse(fmt::format("column '{}': {}", name, error.what()));
    }
  }

  BlockFooter footer_;
  std::vector<size_t> wanted_;  // fields of the file, one per column of blocks
  std::vector<size_t> by_offset_ = sorted_by_field(wanted_);
  std::vector<size_t> kept_;  // the blocks that count, one per granule

  static std::vector<size_t> sorted_by_field(const std::vector<size_t>& wanted) {
    std::vector<size_t> order(wanted.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
    return order;
  }
};

class BlockFormat : public Format {
 public:
  explicit BlockFormat(const FormatOptions& options) : Format(options) {
    for (const auto& [key, value] : options.settings) throw UserError("block has no setting '{}'", key);
  }

  std::string_view name() const override { return "block"; }
  int version() const override { return 2; }
  std::string_view suffix() const override { return ".block"; }
  bool names_columns() const override { return true; }
  bool is_typed() const override { return true; }

  std::vector<BlockField> fields(const ByteSource& shard) const override {
    const BlockFooter footer = read_block_footer(shard);
    std::vector<BlockField> fields;
    for (const size_t field : choose_columns(footer.fields, options().columns, shard.name()))
      fields.push_back(footer.fields[field]);
    return fields;
  }

  ShardIndex index(const ByteSource& shard, const Progress& progress) const override {
    const BlockFooter footer = read_block_footer(shard);
    ShardIndex index{.granule = 0};
    if (options().bad == BadRecords::kSkip) {
      index.bad = damaged_blocks(shard, footer, progress);
      progress(shard.size() - (footer.blocks.empty() ? 0 : footer.blocks.back().end()));
    } else {
      progress(shard.size());
    }
    for (const StoredBlock& block : footer.blocks) {
      if (index.is_bad(block.offset)) continue;
      index.offsets.push_back(static_cast<uint64_t>(block.offset));
      index.firsts.push_back(index.records);
      index.records += block.records;
    }
    if (index.records == 0 && index.bad.empty()) throw UserError("{}: the file has no records", shard.name());
    index.firsts.push_back(index.records);
    index.offsets.push_back(static_cast<uint64_t>(footer.blocks.back().end()));
    return index;
  }

  std::unique_ptr<ShardDecoder> open(const ByteSource& shard, const ShardIndex& index) const override {
    BlockFooter footer = read_block_footer(shard);
    std::vector<size_t> wanted = choose_columns(footer.fields, options().columns, shard.name());
    return std::make_unique<BlockDecoder>(shard, index, std::move(footer), std::move(wanted));
  }

 private:
  // Blocks of which a wanted column cannot be decoded. Reads the file once, in order.
  std::vector<BadRecord> damaged_blocks(const ByteSource& shard, const BlockFooter& footer,
                                        const Progress& progress) const {
    const std::vector<size_t> wanted = choose_columns(footer.fields, options().columns, shard.name());
    const ShardIndex every = all_blocks(footer);
    const BlockDecoder decoder(shard, every, footer, wanted);
    std::vector<BadRecord> bad;
    FetchBuffers buffers;
    ColumnBlock decoded;
    for (int64_t b = 0; b < every.granules(); ++b) {
      const StoredBlock& block = footer.blocks[static_cast<size_t>(b)];
      buffers.reset();
      Fetch fetch(shard, buffers);
      decoded.reset(fields(shard));
      try {
        decoder.decode(fetch, every.first_of(b), block.records, decoded);
      } catch (const UserError& error) {
        std::string_view problem = error.what();
        if (problem.starts_with(shard.name() + " ")) problem.remove_prefix(shard.name().size() + 1);
        bad.push_back({block.offset, std::string(problem), block.records});
      }
      progress(block.end() - block.offset);
    }
    return bad;
  }

  static ShardIndex all_blocks(const BlockFooter& footer) {
    ShardIndex index{.records = footer.records(), .granule = footer.block_records};
    for (const StoredBlock& block : footer.blocks)
      index.offsets.push_back(static_cast<uint64_t>(block.offset));
    index.offsets.push_back(static_cast<uint64_t>(footer.blocks.empty() ? 0 : footer.blocks.back().end()));
    return index;
  }
};

}  // namespace

std::unique_ptr<Format> make_block_format(const FormatOptions& options) {
  return std::make_unique<BlockFormat>(options);
}

}  // namespace lockstep
