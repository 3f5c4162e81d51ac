#include <algorithm>
#include <bit>

#include "base/error.h"
#include "data/block/block_format.h"
#include "data/block/block_layout.h"
#include "data/format/gathered_columns.h"

namespace lockstep {
namespace {

constexpr int64_t kBlockBytes = 64 << 10;
constexpr int64_t kMostBlockRecords = 4096;

class BlockWriter : public TableWriter {
 public:
  BlockWriter(const std::vector<BlockField>& fields, const TableWriterOptions& options)
      : options_(options), gathered_(fields) {
    if (fields.empty()) throw UserError("a block file needs at least one column");
    footer_.fields = fields;
    footer_.block_records = 0;
  }

  void append(const ColumnBlock& block, std::string& out) override {
    gathered_.append(block);
    // The first records say how long they are: enough for a block of the smallest.
    if (footer_.block_records == 0 && gathered_.records() >= kMostBlockRecords) choose_block();
    if (footer_.block_records == 0) return;
    size_t done = 0;
    const auto size = static_cast<size_t>(footer_.block_records);
    for (; done + size <= gathered_.records(); done += size) write_block(done, size, out);
    gathered_.drop(done);
  }

  void finish(std::string& out) override {
    if (footer_.block_records == 0) choose_block();
    const auto size = static_cast<size_t>(footer_.block_records);
    for (size_t done = 0; done < gathered_.records(); done += size)
      write_block(done, std::min(size, gathered_.records() - done), out);
    if (offset_ == 0) put(kBlockMagic, out);
    put(to_bytes(footer_), out);
  }

 private:
  void choose_block() {
    const auto records = static_cast<int64_t>(std::max<size_t>(gathered_.records(), 1));
    const int64_t fitting = kBlockBytes / std::max<int64_t>(gathered_.bytes() / records, 1);
    footer_.block_records = static_cast<int64_t>(
        std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(fitting, 1, kMostBlockRecords))));
  }

  void put(std::string_view bytes, std::string& out) {
    out += bytes;
    offset_ += static_cast<int64_t>(bytes.size());
  }

  void write_block(size_t first, size_t count, std::string& out) {
    if (offset_ == 0) put(kBlockMagic, out);
    StoredBlock block{static_cast<uint32_t>(count), offset_, {}};
    for (const BlockColumn& column : gathered_.columns()) {
      const std::string raw = encode_chunk(column, first, count);
      std::string stored = compress(options_.compression, raw);
      StoredChunk chunk{options_.compression, offset_};
      if (stored.size() >= raw.size()) {
        stored = raw;
        chunk.compression = Codec::kNone;
      }
      chunk.stored = static_cast<uint32_t>(stored.size());
      chunk.raw = static_cast<uint32_t>(raw.size());
      chunk.hash = chunk_hash(stored);
      put(stored, out);
      block.chunks.push_back(chunk);
    }
    footer_.blocks.push_back(std::move(block));
  }

  TableWriterOptions options_;
  BlockFooter footer_;
  int64_t offset_ = 0;
  GatheredColumns gathered_;
};

}  // namespace

std::unique_ptr<TableWriter> make_block_writer(const std::vector<BlockField>& fields,
                                               const TableWriterOptions& options) {
  return std::make_unique<BlockWriter>(fields, options);
}

}  // namespace lockstep
