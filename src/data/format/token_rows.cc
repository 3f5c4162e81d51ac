#include "data/format/token_rows.h"

namespace lockstep {
namespace {

// Plain loops over what does not overlap, which compilers turn into vector instructions. Rows of 2-byte
// tokens are aligned to 2 bytes, which T + 1 of them leave no better.
template <typename Token>
void widen_row(const Token* __restrict row, int64_t seq, int32_t* __restrict tokens,
               int32_t* __restrict targets) {
  for (int64_t t = 0; t < seq; ++t) tokens[t] = static_cast<int32_t>(row[t]);
  for (int64_t t = 0; t < seq; ++t) targets[t] = static_cast<int32_t>(row[t + 1]);
}

}  // namespace

void TokenRows::expand(const std::byte* row, std::span<std::byte* const> columns) const {
  auto* tokens = reinterpret_cast<int32_t*>(columns[0]);
  auto* targets = reinterpret_cast<int32_t*>(columns[1]);
  switch (width_) {
    case 1: return widen_row(reinterpret_cast<const uint8_t*>(row), seq_, tokens, targets);
    case 2: return widen_row(reinterpret_cast<const uint16_t*>(row), seq_, tokens, targets);
    default: return widen_row(reinterpret_cast<const int32_t*>(row), seq_, tokens, targets);
  }
}

}  // namespace lockstep
