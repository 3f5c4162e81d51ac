// Decodes any rows of one Parquet file, from its page table and a cache of pieces.
#pragma once
#include <memory>
#include <vector>

#include "data/format/format.h"
#include "data/format/parquet/page_table.h"
#include "data/format/parquet/piece_cache.h"

namespace lockstep::parquet {

// What is known of a file: its columns, those that are wanted, and its pages.
struct FileLayout {
  FileMetadata metadata;
  std::vector<size_t> wanted;  // leaves, one per column of blocks
  PageTable pages;
  Limits limits;
};

// The dictionary's number among the pieces of a column; pages count from 0 on.
inline constexpr int64_t kDictionary = -1;

// One piece from the bytes of its pages. Throws UserError by file, byte, column and row group.
Piece decode_piece(const ByteSource& file, const FileLayout& layout, size_t group, size_t leaf, int64_t piece,
                   const std::vector<std::string_view>& pages, std::shared_ptr<const Dictionary> dictionary);
// As such a UserError.
[[noreturn]] void raise_damage(const ByteSource& file, const FileLayout& layout, size_t group, size_t leaf,
                               int64_t piece, const std::exception& damage);
// The pages of a piece.
std::vector<PageSpan> spans_of(const FileLayout& layout, size_t group, size_t leaf, int64_t piece);

std::unique_ptr<ShardDecoder> make_decoder(const ByteSource& file, const ShardIndex& index, FileLayout layout,
                                           std::shared_ptr<PieceCache> cache);

}  // namespace lockstep::parquet
