#include "comm/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/number_text.h"

namespace lockstep {

std::string_view name_of(CollectiveKind kind) {
  static constexpr std::array<std::string_view, 10> kNames = {
      "nothing",    "all_reduce", "reduce_scatter", "all_gather", "broadcast",
      "all_to_all", "barrier",    "host_barrier",   "send",       "recv"};
  const auto index = static_cast<size_t>(kind);
  return index < kNames.size() ? kNames[index] : "unknown";
}

Slice slice_of(int64_t count, int ranks, int rank, int64_t block) {
  const int64_t blocks = (count + block - 1) / block;
  const auto edge = [&](int64_t at) { return std::min(count, blocks * at / ranks * block); };
  return {edge(rank), edge(rank + 1)};
}

std::string text_of(CollectiveKind kind, uint64_t number, std::string_view label, int64_t bytes) {
  return fmt::format("{} #{} ({}{}{})", name_of(kind), number, label, label.empty() ? "" : ", ",
                     bytes_text(bytes));
}

std::string text_of(const Collective& collective) {
  return text_of(collective.kind, collective.number, collective.label, collective.bytes());
}

}  // namespace lockstep
