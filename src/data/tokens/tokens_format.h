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
//   marked     true: of shards whose tokens do not all count in the loss (token_corpus.h); targets that do
//              not are -100. Such shards are also read without it where documents are separate.
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

// The same file, written piece by piece: only the ends of the documents are held.
struct TokenFileLayout {
  int width = 2;        // bytes of a token: 2 or 4
  bool marked = false;  // tokens say whether they count in the loss
};

// The layout with the fewest bytes for tokens below `vocab`.
TokenFileLayout layout_of_tokens(int64_t vocab, bool marked);

class TokenFileWriter {
 public:
  explicit TokenFileWriter(const std::string& path, TokenFileLayout layout = {});

  void append(std::span<const uint16_t> tokens);  // to the document that is open, of 2 bytes unmarked
  // `counts` has a 0 for each token that does not count in the loss; empty: all count. Throws UserError for a
  // token that the layout does not hold.
  void append(std::span<const int32_t> tokens, std::span<const uint8_t> counts = {});
  void end_document();
  int64_t documents() const { return static_cast<int64_t>(ends_.size()); }
  int64_t tokens() const { return static_cast<int64_t>(tokens_); }
  int64_t bytes() const { return file_.size() + 8 * documents(); }  // of the file if it were finished now
  bool is_between_documents() const { return tokens_ == (ends_.empty() ? 0 : ends_.back()); }
  // What a marked file says about how it came to be.
  void set_left_out(int64_t cut, int64_t dropped) { cut_ = cut, dropped_ = dropped; }
  // Gives the size of the file, which appears under its name only now.
  int64_t finish();

 private:
  std::string header() const;

  TokenFileLayout layout_;
  PartialFile file_;
  int64_t cut_ = 0, dropped_ = 0;
  std::string encoded_;
  uint64_t tokens_ = 0;
  std::vector<uint64_t> ends_;
};

}  // namespace lockstep
