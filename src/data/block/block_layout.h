// The layout of our own columnar files (.block), shared by writer and reader.
//
//   magic              16 bytes, with the version
//   blocks             each a power of two of records (the last may hold fewer), a chunk per column
//   footer             columns; then for every block its records, for every chunk how it is stored
//   size of the footer 8 bytes
//   hash of the footer 8 bytes (XXH3 of the footer)
//   magic              16 bytes
//
// A chunk is compressed on its own and has its own hash (XXH3 of the stored bytes), so that a reader takes
// the columns it wants and trusts none. Before compression it holds, in this order:
//   flags              1 byte: 1 if some record has no value
//   missing            1 byte per record, if so
//   counts             4 bytes per record, where records hold varying numbers of values
//   values             as in memory; of byte strings first 4 bytes of length each, then all bytes
//
// All numbers are little-endian. The footer of a file is the index of its records: nothing else is read to
// find them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/bytes/codec.h"
#include "data/format/column_block.h"

namespace lockstep {

inline constexpr std::string_view kBlockMagic = "lockstep.block.1";
inline constexpr int64_t kBlockTrailerBytes = 8 + 8 + static_cast<int64_t>(kBlockMagic.size());
// Of a chunk before compression. Blocks are some 64 kB, or one long record; a file that claims more is
// damaged.
inline constexpr int64_t kMostChunkBytes = int64_t{256} << 20;

struct StoredChunk {
  Codec compression = Codec::kNone;
  int64_t offset = 0;  // in the file; follows from the sizes before it
  uint32_t stored = 0;
  uint32_t raw = 0;
  uint64_t hash = 0;

  bool operator==(const StoredChunk&) const = default;
};

struct StoredBlock {
  uint32_t records = 0;
  int64_t offset = 0;
  std::vector<StoredChunk> chunks;  // one per column

  int64_t end() const;
};

struct BlockFooter {
  std::vector<BlockField> fields;
  int64_t block_records = 1;  // of every block but the last
  std::vector<StoredBlock> blocks;

  int64_t records() const;
};

uint64_t chunk_hash(std::string_view bytes);

// The footer with all that follows it.
std::string to_bytes(const BlockFooter& footer);

class ByteSource;
// Reads it from the end of a file. Throws UserError for bytes that are not one, by file and offset.
BlockFooter read_block_footer(const ByteSource& file);

// One column of a block before compression, and the way back: decode_chunk appends `count` records from the
// `first` on; views point into `raw`. Throws UserError that does not know the file.
std::string encode_chunk(const BlockColumn& column, size_t first, size_t count);
void decode_chunk(std::string_view raw, int64_t records, int64_t first, int64_t count, BlockColumn& column);

}  // namespace lockstep
