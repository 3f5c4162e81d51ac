// Rows of a piece as values of a column.
#include <algorithm>
#include <array>

#include "data/format/parquet/append_values.h"

namespace lockstep::parquet {
namespace {

// Some rows at a time, which stay in the nearest cache.
template <typename T>
void append_unpacked(const Piece& piece, size_t first, size_t count, std::vector<T>& out) {
  std::array<uint32_t, 2048> picks;
  for (size_t done = 0; done < count; done += picks.size()) {
    const size_t here = std::min(picks.size(), count - done);
    piece.packed_picks->copy(piece.packed, first + done, here, picks.data());
    append_picked(*piece.dictionary, std::span(picks).first(here), out);
  }
}

size_t size_of(const ColumnValues& values) {
  return std::visit([](const auto& held) { return held.size(); }, values);
}

}  // namespace

void append_rows(const Piece& piece, int64_t first, int64_t count, BlockColumn& column) {
  const auto from = static_cast<size_t>(first);
  const auto number = static_cast<size_t>(count);
  const bool list = column.width == kVarying;
  const size_t before = list ? column.ends.size() : size_of(column.values);
  if (!piece.missing.empty()) {
    column.missing.resize(before);
    column.missing.insert(column.missing.end(), piece.missing.begin() + first,
                          piece.missing.begin() + first + count);
  } else if (!column.missing.empty()) {
    column.missing.resize(before + number);
  }
  size_t begin = from;
  size_t end = from + number;
  if (list) {
    begin = from == 0 ? 0 : static_cast<size_t>(piece.ends[from - 1]);
    end = number == 0 ? begin : static_cast<size_t>(piece.ends[from + number - 1]);
    const int64_t base = (column.ends.empty() ? 0 : column.ends.back()) - static_cast<int64_t>(begin);
    for (size_t r = from; r < from + number; ++r) column.ends.push_back(base + piece.ends[r]);
  }
  std::visit(
      [&](auto& out) {
        using Values = std::decay_t<decltype(out)>;
        if constexpr (std::is_arithmetic_v<typename Values::value_type>)
          if (piece.stored != nullptr) return append_stored(piece.stored, from, number, out);
        if (piece.packed_picks) return append_unpacked(piece, from, number, out);
        if (!piece.dictionary) {
          const auto& held = std::get<Values>(piece.values);
          out.insert(out.end(), held.begin() + static_cast<int64_t>(begin),
                     held.begin() + static_cast<int64_t>(end));
          return;
        }
        const size_t at = out.size();
        append_picked(*piece.dictionary, std::span(piece.picks).subspan(from, number), out);
        if (!piece.missing.empty())
          for (size_t i = 0; i < number; ++i)
            if (piece.missing[from + i] != 0) out[at + i] = {};
      },
      column.values);
}

}  // namespace lockstep::parquet
