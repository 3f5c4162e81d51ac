// Decodes any rows of one Parquet file, from its page table and a cache of pieces.
#pragma once
#include <memory>
#include <vector>

#include "data/format/format.h"
#include "data/parquet/page_table.h"
#include "data/parquet/piece_cache.h"

namespace lockstep::parquet {

// What is known of a file: its columns, those that are wanted, and its pages.
struct FileLayout {
  FileMetadata metadata;
  std::vector<size_t> wanted;  // leaves, one per column of blocks
  PageTable pages;
  Limits limits;

  const ChunkPages& chunk_of(const PieceKey& key) const { return pages.groups[key.group][key.leaf]; }
  // The pages that a piece is decoded from.
  std::vector<PageSpan> spans_of(const PieceKey& key) const;
};

// One piece from the bytes of its pages. Throws UserError by file, byte, column and row group.
Piece decode_piece(const ByteSource& file, const FileLayout& layout, const PieceKey& key,
                   const std::vector<std::string_view>& pages, std::shared_ptr<const Dictionary> dictionary);

// Appends rows [first, first + count) of a piece to a column. Throws likewise.
void append_piece(const ByteSource& file, const FileLayout& layout, const PieceKey& key, const Piece& piece,
                  int64_t first, int64_t count, BlockColumn& column);

std::unique_ptr<ShardDecoder> make_decoder(const ByteSource& file, const ShardIndex& index, FileLayout layout,
                                           std::shared_ptr<PieceCache> cache);

}  // namespace lockstep::parquet
