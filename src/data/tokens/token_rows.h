// TokenRows: windows of T + 1 tokens in 1, 2 or 4 bytes each, as compact rows of the columns tokens (the
// first T as i32) and targets (the last T).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "data/format/column_block.h"

namespace lockstep {

class TokenRows : public CompactRows {
 public:
  // Tokens below `vocab`.
  TokenRows(int64_t seq, int width, int64_t vocab) : seq_(seq), width_(width), vocab_(vocab) {}

  int width() const { return width_; }  // bytes of a token
  int64_t row_bytes() const override { return (seq_ + 1) * width_; }
  bool holds(const std::byte* row) const override;
  void expand(const std::byte* row, std::span<std::byte* const> columns) const override;

 private:
  int64_t seq_;
  int width_;
  int64_t vocab_;
};

// The bytes that tokens below `vocab` take at least, of those that TokenRows has for corpora.
inline int width_of_tokens(int64_t vocab) { return vocab <= (1 << 16) ? 2 : 4; }

// Best-fit packing: which pieces of which documents share a row of T positions, planned from lengths alone.
//
// A document of n + 1 tokens takes n positions, each with the token after it as its target. One longer than a
// row is cut into rows of its own and a rest; the cuts overlap by one token, so that no target is lost.
// Pieces are placed longest first, each into the fullest row that still has room (Ding et al., 2024:
// documents stay whole, at nearly the density of cutting them anywhere).
struct TokenPiece {
  int64_t first = 0;      // token of the shard
  int64_t positions = 0;  // one fewer than the tokens it reads

  bool operator==(const TokenPiece&) const = default;
};

// Appends the pieces of a document at tokens [begin, end) for rows of `seq` positions; none for a document of
// fewer than two tokens.
void cut_document(int64_t begin, int64_t end, int64_t seq, std::vector<TokenPiece>& pieces);

using PackedRows = std::vector<std::vector<TokenPiece>>;
// Every piece once, in rows of at most `seq` positions. A function of the lengths and their order.
PackedRows pack_best_fit(std::span<const TokenPiece> pieces, int64_t seq);

}  // namespace lockstep
