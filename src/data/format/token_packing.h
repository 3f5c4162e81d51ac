// Best-fit packing: which pieces of which documents share a row of T positions, planned from lengths alone.
//
// A document of n + 1 tokens takes n positions, each with the token after it as its target. One longer than a
// row is cut into rows of its own and a rest; the cuts overlap by one token, so that no target is lost.
// Pieces are placed longest first, each into the fullest row that still has room (Ding et al., 2024:
// documents stay whole, at nearly the density of cutting them anywhere).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

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
