// TokenRows: windows of T + 1 tokens in 1, 2 or 4 bytes each, as compact rows of the columns tokens (the
// first T as i32) and targets (the last T).
#pragma once
#include "data/format/compact_rows.h"

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

}  // namespace lockstep
