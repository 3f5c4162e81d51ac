#include "data/tokens/token_rows.h"

#include <algorithm>
#include <set>
#include <utility>

namespace lockstep {
namespace {

// Plain loops over what does not overlap, which compilers turn into vector instructions. Rows of 2-byte
// tokens are aligned to 2 bytes, which T + 1 of them leave no better.
template <typename Token>
[[gnu::always_inline]] inline void widen_row(const Token* __restrict row, int64_t seq,
                                             int32_t* __restrict tokens, int32_t* __restrict targets) {
  for (int64_t t = 0; t < seq; ++t) tokens[t] = static_cast<int32_t>(row[t]);
  for (int64_t t = 0; t < seq; ++t) targets[t] = static_cast<int32_t>(row[t + 1]);
}

template <typename Token>
[[gnu::always_inline]] inline Token most_of(const Token* row, int64_t count) {
  Token most = 0;
  for (int64_t t = 0; t < count; ++t) most = std::max(most, row[t]);
  return most;
}

// Tokens of 2 bytes are what corpora have; with AVX2 a row takes two thirds of the time.
[[gnu::target("avx2")]] void widen_avx2(const uint16_t* row, int64_t seq, int32_t* tokens, int32_t* targets) {
  widen_row(row, seq, tokens, targets);
}
[[gnu::target("avx2")]] uint16_t most_avx2(const uint16_t* row, int64_t count) { return most_of(row, count); }

bool has_avx2() {
  static const bool kHas = __builtin_cpu_supports("avx2") != 0;
  return kHas;
}

}  // namespace

bool TokenRows::holds(const std::byte* row) const {
  switch (width_) {
    case 1: return vocab_ >= 256 || most_of(reinterpret_cast<const uint8_t*>(row), seq_ + 1) < vocab_;
    case 2: {
      const auto* tokens = reinterpret_cast<const uint16_t*>(row);
      return vocab_ >= (1 << 16) ||
             (has_avx2() ? most_avx2(tokens, seq_ + 1) : most_of(tokens, seq_ + 1)) < vocab_;
    }
    default: return most_of(reinterpret_cast<const uint32_t*>(row), seq_ + 1) < vocab_;
  }
}

void TokenRows::expand(const std::byte* row, std::span<std::byte* const> columns) const {
  auto* tokens = reinterpret_cast<int32_t*>(columns[0]);
  auto* targets = reinterpret_cast<int32_t*>(columns[1]);
  switch (width_) {
    case 1: return widen_row(reinterpret_cast<const uint8_t*>(row), seq_, tokens, targets);
    case 2:
      return has_avx2() ? widen_avx2(reinterpret_cast<const uint16_t*>(row), seq_, tokens, targets)
                        : widen_row(reinterpret_cast<const uint16_t*>(row), seq_, tokens, targets);
    default: return widen_row(reinterpret_cast<const int32_t*>(row), seq_, tokens, targets);
  }
}

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
