#include "data/format/token_packing.h"

#include <algorithm>
#include <set>
#include <utility>

namespace lockstep {

void cut_document(int64_t begin, int64_t end, int64_t seq, std::vector<TokenPiece>& pieces) {
  for (int64_t first = begin; first + 1 < end; first += seq)
    pieces.push_back({first, std::min(seq, end - 1 - first)});
}

PackedRows pack_best_fit(std::span<const TokenPiece> pieces, int64_t seq) {
  std::vector<TokenPiece> longest(pieces.begin(), pieces.end());
  std::stable_sort(longest.begin(), longest.end(),
                   [](const TokenPiece& a, const TokenPiece& b) { return a.positions > b.positions; });
  PackedRows rows;
  std::set<std::pair<int64_t, size_t>> room;  // left in a row, and which
  for (const TokenPiece& piece : longest) {
    auto row = room.lower_bound({piece.positions, 0});
    int64_t left = seq - piece.positions;
    size_t number = rows.size();
    if (row == room.end()) {
      rows.emplace_back();
    } else {
      left = row->first - piece.positions;
      number = row->second;
      room.erase(row);
    }
    rows[number].push_back(piece);
    if (left > 0) room.emplace(left, number);
  }
  return rows;
}

}  // namespace lockstep
