#include "data/parquet/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "data/format/value_text.h"
#include "data/parquet/thrift.h"

namespace lockstep::parquet {
namespace {

// As the column gives them: unsigned and decimal numbers in a type that holds them.
ColumnValues converted(ColumnValues values, const Leaf& leaf) {
  constexpr auto kPowers =
      std::to_array<double>({1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22});
  if (leaf.scale >= 0) {
    std::vector<double> out;
    std::visit(
        [&](const auto& numbers) {
          if constexpr (std::is_integral_v<typename std::decay_t<decltype(numbers)>::value_type>)
            for (const auto number : numbers)
              out.push_back(static_cast<double>(number) / kPowers[static_cast<size_t>(leaf.scale)]);
        },
        values);
    return out;
  }
  if (!leaf.is_unsigned) return values;
  if (const auto* numbers = std::get_if<std::vector<int32_t>>(&values)) {
    std::vector<int64_t> out(numbers->size());
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<int64_t>(static_cast<uint32_t>((*numbers)[i]));
    return out;
  }
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(&values))
    if (std::any_of(numbers->begin(), numbers->end(), [](int64_t number) { return number < 0; }))
      throw Damaged("it has unsigned numbers above 9223372036854775807; write them as DOUBLE or as text");
  return values;
}

std::vector<uint8_t> bad_texts(const ColumnValues& values, const Leaf& leaf) {
  std::vector<uint8_t> bad;
  const auto* texts = std::get_if<std::vector<std::string_view>>(&values);
  if (!leaf.text || texts == nullptr) return bad;
  for (size_t i = 0; i < texts->size(); ++i) {
    if (is_utf8((*texts)[i])) continue;
    bad.resize(texts->size());
    bad[i] = 1;
  }
  return bad;
}

void check_indices(std::span<const uint32_t> indices, const Dictionary& dictionary) {
  uint32_t most = 0;
  for (const uint32_t index : indices) most = std::max(most, index);
  if (!indices.empty() && most >= dictionary.size)
    throw Damaged(fmt::format("it refers to entry {} of a dictionary of {}", most, dictionary.size));
}

// A dictionary may be empty where all rows are missing.
template <typename T>
void append_entries(const Dictionary& dictionary, std::span<const uint32_t> indices, std::vector<T>& out) {
  const size_t before = out.size();
  out.resize(before + indices.size());
  if (dictionary.size == 0) return;
  const auto look_up = [&](const auto& entries) {
    for (size_t i = 0; i < indices.size(); ++i) out[before + i] = entries[indices[i]];
  };
  if constexpr (std::is_same_v<T, int64_t>)
    if (const auto* narrow = std::get_if<std::vector<int32_t>>(&dictionary.values)) return look_up(*narrow);
  look_up(std::get<std::vector<T>>(dictionary.values));
}

// The values that a data page holds: those that are not missing.
struct PageValues {
  ColumnValues values;
  std::vector<uint32_t> indices;
  std::vector<uint8_t> bad;
  std::vector<std::shared_ptr<const void>> heaps;
  int64_t heap_bytes = 0;
};

PageValues read_values(const OpenPage& page, const Leaf& leaf, const Dictionary* dictionary, size_t count) {
  PageValues out;
  if (!by_dictionary(page.header.encoding)) {
    PlainValues plain = decode_values(page.header.encoding, leaf, page.values, count);
    out.values = converted(std::move(plain.values), leaf);
    out.bad = bad_texts(out.values, leaf);
    if (out.values.index() != static_cast<size_t>(ValueType::kBytes)) return out;
    out.heaps = {page.heap, plain.heap};
    out.heap_bytes = page.heap->size() + (plain.heap ? static_cast<int64_t>(plain.heap->size()) : 0);
    return out;
  }
  if (count == 0) return out;
  if (dictionary == nullptr) throw Damaged("it refers to a dictionary, and there is none");
  if (page.values.empty()) throw Damaged("its values end too early");
  decode_rle(page.values.substr(1), static_cast<uint8_t>(page.values[0]), 0, count, out.indices);
  check_indices(out.indices, *dictionary);
  if (!dictionary->bad.empty()) {
    out.bad.resize(count);
    for (size_t i = 0; i < count; ++i) out.bad[i] = dictionary->bad[out.indices[i]];
  }
  return out;
}

// Values at their rows, with an empty one where a row has none.
template <typename T>
std::vector<T> spread(std::vector<T> values, const std::vector<uint8_t>& missing) {
  if (missing.empty()) return values;
  std::vector<T> out(missing.size());
  size_t next = 0;
  for (size_t r = 0; r < missing.size(); ++r)
    if (missing[r] == 0) out[r] = values[next++];
  return out;
}

void require(bool data) {
  if (!data) throw Damaged("a data page is expected here");
}

// Numbers of 64 bits in 32, where all of them fit.
ColumnValues narrowed(ColumnValues values) {
  const auto* wide = std::get_if<std::vector<int64_t>>(&values);
  if (wide == nullptr || std::any_of(wide->begin(), wide->end(),
                                     [](int64_t number) { return number != static_cast<int32_t>(number); }))
    return values;
  return std::vector<int32_t>(wide->begin(), wide->end());
}

// Whether a page without missing rows has its numbers just as the column holds them.
bool are_stored_numbers(const OpenPage& page, const Leaf& leaf, size_t count) {
  const bool wide = leaf.physical == Physical::kInt64 || leaf.physical == Physical::kDouble;
  const bool narrow = leaf.physical == Physical::kInt32 || leaf.physical == Physical::kFloat;
  if (page.header.encoding != Encoding::kPlain || leaf.scale >= 0 || leaf.is_unsigned || !(wide || narrow))
    return false;
  if (page.values.size() / (wide ? 8 : 4) < count) throw Damaged("its values end too early");
  return count > 0;
}

// The rows of a list column, as levels of all its pages tell them.
class ListRows {
 public:
  explicit ListRows(const Leaf& leaf) : leaf_(leaf) {}

  // How many values the levels say that there are.
  size_t add(const std::vector<uint32_t>& repetition, const std::vector<uint32_t>& definition) {
    const uint32_t optional = leaf_.optional ? 1 : 0;
    const auto full = static_cast<uint32_t>(leaf_.max_definition);
    size_t values = 0;
    for (size_t i = 0; i < repetition.size(); ++i) {
      if (repetition[i] == 0) {
        piece_.ends.push_back(elements_);
        piece_.missing.push_back(definition[i] < optional);
      } else if (piece_.ends.empty() || definition[i] <= optional) {
        throw Damaged("its levels do not make lists");
      }
      if (definition[i] <= optional) continue;
      if (definition[i] != full)
        throw Damaged("a list has a null among its values; fill these before the file is written");
      ++values;
      piece_.ends.back() = ++elements_;
    }
    return values;
  }
  void mark_bad(const std::vector<uint8_t>& bad, int64_t first_element) {
    for (size_t i = 0; i < bad.size(); ++i) {
      if (bad[i] == 0) continue;
      const int64_t element = first_element + static_cast<int64_t>(i);
      const int64_t row =
          std::upper_bound(piece_.ends.begin(), piece_.ends.end(), element) - piece_.ends.begin();
      if (piece_.bad_rows.empty() || piece_.bad_rows.back() != row) piece_.bad_rows.push_back(row);
    }
  }
  int64_t elements() const { return elements_; }
  Piece& piece() { return piece_; }

 private:
  const Leaf& leaf_;
  Piece piece_;
  int64_t elements_ = 0;
};

}  // namespace

int64_t Dictionary::bytes() const {
  const size_t held =
      std::visit([](const auto& entries) { return entries.size() * sizeof(entries[0]); }, values);
  return static_cast<int64_t>(held + bad.size()) + (heap ? heap->size() : 0);
}

int64_t Piece::bytes() const {
  size_t bytes = sizeof(Piece) + indices.size() * 4 + missing.size() + ends.size() * 8 + bad_rows.size() * 8;
  bytes += std::visit([](const auto& held) { return held.size() * sizeof(held[0]); }, values);
  const bool alone = rows == 0 && dictionary;
  return static_cast<int64_t>(bytes) + heap_bytes + (alone ? dictionary->bytes() : 0);
}

std::shared_ptr<const Dictionary> decode_dictionary(std::string_view page, const Leaf& leaf,
                                                    Codec compression, const Limits& limits) {
  const OpenPage open = open_page(page, leaf, compression, limits);
  if (open.header.kind != PageKind::kDictionary) throw Damaged("a dictionary is expected here");
  const auto size = static_cast<size_t>(open.header.values);
  ColumnValues values = converted(decode_values(Encoding::kPlain, leaf, open.values, size).values, leaf);
  auto dictionary = std::make_shared<Dictionary>();
  dictionary->size = size;
  dictionary->bad = bad_texts(values, leaf);
  if (values.index() == static_cast<size_t>(ValueType::kBytes)) dictionary->heap = open.heap;
  dictionary->values = narrowed(std::move(values));
  return dictionary;
}

Piece decode_page(std::string_view page, const Leaf& leaf, Codec compression,
                  std::shared_ptr<const Dictionary> dictionary, int64_t rows, const Limits& limits) {
  const OpenPage open = open_page(page, leaf, compression, limits);
  require(is_data(open.header));
  if (open.header.values != rows)
    throw Damaged(fmt::format("it has {} rows instead of {}", open.header.values, rows));
  Piece piece;
  piece.rows = rows;
  size_t present = static_cast<size_t>(rows);
  if (!is_whole(open.header, open.definition, leaf)) {
    std::vector<uint32_t> levels;
    decode_rle(open.definition, bits_for(leaf.max_definition), 0, present, levels);
    const auto some = static_cast<size_t>(std::count(levels.begin(), levels.end(), 0u));
    if (some > 0) {
      piece.missing.resize(levels.size());
      for (size_t r = 0; r < levels.size(); ++r) piece.missing[r] = levels[r] == 0;
      present -= some;
    }
  }
  const bool indices =
      by_dictionary(open.header.encoding) && dictionary && dictionary->bad.empty() && !open.values.empty();
  if (piece.missing.empty() && (indices || are_stored_numbers(open, leaf, present))) {
    piece.stored = open.values;
    if (indices) piece.dictionary = std::move(dictionary);
    piece.heaps = {open.heap};
    piece.heap_bytes = open.heap->size();
    return piece;
  }
  PageValues values = read_values(open, leaf, dictionary.get(), present);
  if (!values.bad.empty()) {
    const std::vector<uint8_t> bad = spread(std::move(values.bad), piece.missing);
    for (size_t r = 0; r < bad.size(); ++r)
      if (bad[r] != 0) piece.bad_rows.push_back(static_cast<int64_t>(r));
  }
  if (by_dictionary(open.header.encoding)) {
    piece.indices = spread(std::move(values.indices), piece.missing);
    piece.dictionary = std::move(dictionary);
    if (!piece.dictionary) {  // all rows are missing
      piece.dictionary = std::make_shared<Dictionary>();
    }
    return piece;
  }
  std::visit([&](auto& held) { piece.values = spread(std::move(held), piece.missing); }, values.values);
  piece.heaps = std::move(values.heaps);
  piece.heap_bytes = values.heap_bytes;
  return piece;
}

Piece decode_list(const std::vector<std::string_view>& pages, const Leaf& leaf, Codec compression,
                  std::shared_ptr<const Dictionary> dictionary, int64_t rows, const Limits& limits) {
  ListRows lists(leaf);
  ColumnValues all = make_column(leaf.field()).values;
  std::vector<uint32_t> repetition;
  std::vector<uint32_t> definition;
  for (const std::string_view page : pages) {
    const OpenPage open = open_page(page, leaf, compression, limits);
    require(is_data(open.header));
    const auto count = static_cast<size_t>(open.header.values);
    decode_rle(open.repetition, bits_for(leaf.max_repetition), 0, count, repetition);
    decode_rle(open.definition, bits_for(leaf.max_definition), 0, count, definition);
    const int64_t before = lists.elements();
    PageValues values = read_values(open, leaf, dictionary.get(), lists.add(repetition, definition));
    if (lists.elements() > limits.page_values)
      throw Damaged(fmt::format("a row group has more than {} values in lists; write smaller row groups",
                                limits.page_values));
    lists.mark_bad(values.bad, before);
    std::visit(
        [&](auto& out) {
          using Values = std::decay_t<decltype(out)>;
          if (by_dictionary(open.header.encoding)) {
            if (dictionary) append_entries(*dictionary, values.indices, out);
          } else {
            const auto& held = std::get<Values>(values.values);
            out.insert(out.end(), held.begin(), held.end());
          }
        },
        all);
    Piece& piece = lists.piece();
    piece.heaps.insert(piece.heaps.end(), values.heaps.begin(), values.heaps.end());
    piece.heap_bytes += values.heap_bytes;
  }
  Piece piece = std::move(lists.piece());
  piece.rows = static_cast<int64_t>(piece.ends.size());
  if (piece.rows != rows)
    throw Damaged(fmt::format("its lists have {} rows instead of {}", piece.rows, rows));
  if (std::count(piece.missing.begin(), piece.missing.end(), 1) == 0) piece.missing.clear();
  piece.values = std::move(all);
  if (dictionary && dictionary->heap) piece.heaps.push_back(dictionary->heap);
  return piece;
}

void append_rows(const Piece& piece, int64_t first, int64_t count, BlockColumn& column) {
  const auto from = static_cast<size_t>(first);
  const auto number = static_cast<size_t>(count);
  const bool list = column.width == kVarying;
  const size_t before =
      list ? column.ends.size() : std::visit([](const auto& held) { return held.size(); }, column.values);
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
        if (!piece.stored.empty() && piece.dictionary) {
          thread_local std::vector<uint32_t> unpacked;
          decode_rle(piece.stored.substr(1), static_cast<uint8_t>(piece.stored[0]), from, number, unpacked);
          check_indices(unpacked, *piece.dictionary);
          return append_entries(*piece.dictionary, unpacked, out);
        }
        if constexpr (std::is_arithmetic_v<typename Values::value_type>)
          if (!piece.stored.empty()) {
            const size_t each = sizeof(typename Values::value_type), held = out.size();
            out.resize(held + number);
            std::memcpy(out.data() + held, piece.stored.data() + from * each, number * each);
            return;
          }
        if (!piece.dictionary) {
          const auto& held = std::get<Values>(piece.values);
          out.insert(out.end(), held.begin() + static_cast<int64_t>(begin),
                     held.begin() + static_cast<int64_t>(end));
          return;
        }
        const size_t at = out.size();
        append_entries(*piece.dictionary, std::span(piece.indices).subspan(from, number), out);
        if (!piece.missing.empty())
          for (size_t i = 0; i < number; ++i)
            if (piece.missing[from + i] != 0) out[at + i] = {};
      },
      column.values);
}

}  // namespace lockstep::parquet
