// Corpora of tokens as records of T positions, for next-token training: columns tokens i32[T] and targets
// i32[T], and where documents are kept apart also documents i32[T] (which one of the row a position belongs
// to) and positions i32[T] (counted from the beginning of that piece).
//
// Settings:
//   seq        T
//   vocab      tokens from this number on are refused
//   pack       split (default): record i holds the tokens [i T, i T + T + 1) of the shard, in the order of
//   its
//              documents. best_fit: documents stay whole where they can, token_packing.h; planned for windows
//              of 512 rows, so that a plan is made again from a few kB of lengths.
//   documents  joined (default) or separate: no target across documents; needs a shard that knows them, as
//              best_fit does.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/format/format.h"
#include "data/format/table_writer.h"

namespace lockstep {

std::unique_ptr<Format> make_tokens_format(const FormatOptions& options);

// The shards that paths, folders and patterns mean: an .idx and the .bin of the same name are one. Throws
// UserError for an index without its tokens.
std::vector<std::unique_ptr<ByteSource>> open_token_shards(const std::vector<std::string>& files);

// Writes our own file of tokens, whose layout token_corpus.h describes.

// The bytes of a file with these documents, in as few bytes per token as their values need (2 or 4). Throws
// UserError for a negative token.
std::string token_file(const std::vector<std::vector<int32_t>>& documents);

// The same file of 2 bytes per token, written piece by piece: only the ends of the documents are held.
class TokenFileWriter {
 public:
  explicit TokenFileWriter(const std::string& path);

  void append(std::span<const uint16_t> tokens);  // to the document that is open
  void end_document();
  int64_t documents() const { return static_cast<int64_t>(ends_.size()); }
  // Gives the size of the file, which appears under its name only now.
  int64_t finish();

 private:
  PartialFile file_;
  uint64_t tokens_ = 0;
  std::vector<uint64_t> ends_;
};

}  // namespace lockstep
