#include "data/format/parquet/row_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "data/format/parquet/encodings.h"
#include "data/format/parquet/few_rows.h"
#include "data/format/parquet/mapped_page.h"
#include "data/format/parquet/row_loops.h"
#include "data/format/parquet/thrift.h"

namespace lockstep::parquet {
namespace {

// Rows whose places in a dictionary, or values, stay in the nearest cache, together with those that follow.
constexpr size_t kAtOnce = 1024;
// Rows that are decoded column by column before they are put together: the more, the more of them find the
// dictionary of a column in the processor's cache, into which the first ones brought it.
constexpr size_t kStretch = 32768;
// A dictionary of so many entries (64 KiB) stays in a near cache while it is used.
constexpr size_t kNearEntries = 16384;
// Of a page, one row in so many is few.
constexpr size_t kFew = 16;
constexpr int64_t kDictionary = -1;
constexpr int64_t kStored = -2;  // how the dictionary lies in the file

int64_t form_of(int64_t page) { return -3 - page; }

// What a thread uses again and again.
struct Scratch {
  std::string page, dictionary;  // as they are stored
  std::shared_ptr<PageBytes> unpacked = std::make_shared<PageBytes>(0);
  std::vector<uint32_t> columns;  // of a stretch
  std::array<std::array<uint32_t, kAtOnce>, 2> picks;
  BlockColumn values;
  std::vector<uint32_t> rows;  // of a page, where they are few
  FewRows few;
};

Scratch& scratch() {
  thread_local Scratch all;
  return all;
}

// Some rows of a page: neighbours, or those that a list names.
struct PageRows {
  size_t first;  // without a list
  size_t count;
  const uint32_t* only;  // counted from `base` on
  int64_t base;

  size_t row(size_t i) const {
    return only == nullptr ? first + i : static_cast<size_t>(int64_t{only[i]} - base);
  }
  size_t extent() const { return count == 0 ? 0 : row(count - 1) + 1 - row(0); }
};

std::string_view read_into(std::string& buffer, const RowDecoder::Fetch& fetch, int64_t offset,
                           size_t bytes) {
  if (buffer.size() < bytes + kReadPast) buffer.resize(bytes + kReadPast);
  fetch.read(offset, std::span(buffer).first(bytes));
  std::fill_n(buffer.data() + bytes, kReadPast, '\0');
  return {buffer.data(), bytes};
}

// Values `first` to `first + count` of the dictionary as a column.
void take_entries(const Dictionary& dictionary, size_t first, size_t count, BlockColumn& column) {
  std::visit(
      [&](auto& out) {
        using Values = std::decay_t<decltype(out)>;
        using T = typename Values::value_type;
        if constexpr (std::is_arithmetic_v<T>) {
          if (dictionary.stored != nullptr) {
            out.resize(count);
            std::memcpy(out.data(), dictionary.stored + first * sizeof(T), count * sizeof(T));
            return;
          }
        }
        const auto& held = std::get<Values>(dictionary.values);
        const auto from = held.begin() + static_cast<int64_t>(first);
        out.assign(from, from + static_cast<int64_t>(count));
      },
      column.values);
}

std::span<std::byte> bytes_of(uint32_t* places, size_t count) {
  return std::as_writable_bytes(std::span(places, count));
}

// A dictionary's values may be kept narrower than the column's.
BlockField field_of(const Dictionary& dictionary, BlockField field) {
  if (dictionary.stored == nullptr) field.type = static_cast<ValueType>(dictionary.values.index());
  return field;
}

EncodedDictionary encode(const Dictionary& dictionary, const BlockField& field,
                         const std::vector<size_t>& places, const RowEncoding& encoding, BigMemory& memory) {
  EncodedDictionary encoded{.size = dictionary.size, .refused = !dictionary.bad.empty(), .places = {}};
  encoded.places.resize(places.size());
  for (EncodedDictionary::Place& place : encoded.places) {
    place.memory = memory.take(dictionary.size * sizeof(uint32_t));
    place.entries = reinterpret_cast<uint32_t*>(place.memory.data());
  }
  BlockColumn some = make_column(field_of(dictionary, field));
  for (size_t done = 0; done < dictionary.size && !encoded.refused; done += kAtOnce) {
    const size_t here = std::min(kAtOnce, dictionary.size - done);
    take_entries(dictionary, done, here, some);
    for (size_t p = 0; p < places.size(); ++p)
      if (!encoding.encode(places[p], some, bytes_of(encoded.places[p].entries + done, here)))
        encoded.refused = true;
  }
  BlockColumn missing = make_column(field);
  std::visit([](auto& values) { values.resize(1); }, missing.values);
  missing.missing = {1};
  for (size_t p = 0; p < places.size(); ++p) {
    uint32_t value = 0;
    if (encoding.encode(places[p], missing, bytes_of(&value, 1))) encoded.places[p].missing = value;
  }
  return encoded;
}

}  // namespace

// A column of the file and the places of rows that are made of it.
struct RowDecoder::Column {
  size_t leaf;
  std::vector<size_t> places;
};

// Columns whose places follow each other in a row.
struct RowDecoder::Group {
  std::span<const Column> columns;
  size_t first, places;
};

// Some rows of a part while their columns are decoded.
class RowDecoder::Stretch {
 public:
  Stretch(const RowDecoder& decoder, const RowEncoding& encoding, const Fetch& fetch, size_t group)
      : decoder_(decoder), layout_(decoder.layout_), encoding_(encoding), fetch_(fetch), group_(group) {}

  // Rows of one page of a column to where `outs` say, one for each of the column's places.
  bool take(const Column& column, int64_t number, const PageRows& rows, const std::vector<uint32_t*>& outs) {
    try {
      return is_few(column, number, rows) ? take_few(column, number, rows, outs)
                                          : take_opened(column, open(column, number, rows), rows, outs);
    } catch (const Damaged& damage) {
      if (mapped_) decoder_.bytes_.check_unchanged(*mapped_);
      raise_damage(decoder_.bytes_, layout_, group_, column.leaf, number, damage);
    }
  }

  // Where something was read from the mapped file, which may have changed meanwhile.
  std::optional<int64_t> mapped() const { return mapped_; }
  // Whether that was a few rows only.
  bool only_few() const { return mapped_ && !maps_pages_; }

 private:
  struct Page {
    std::shared_ptr<const Piece> piece;
    const PageForm* form;                   // of the piece; null: it has the values
    const char* values;                     // as the form has them
    std::optional<MappedPage> mapped = {};  // what they lie in; nothing: they were read
  };

  const ChunkPages& chunk_of(const Column& column) const { return layout_.pages.groups[group_][column.leaf]; }
  PieceKey key_of(const Column& column, int64_t piece) const {
    return {decoder_.file_, static_cast<int64_t>(group_), static_cast<int64_t>(column.leaf), piece,
            encoding_.id()};
  }
  size_t width_of(const Column& column) const {
    return parquet::width_of(layout_.metadata.leaves[column.leaf]);
  }

  PageColumn page_column(const Column& column) const {
    return {decoder_.bytes_, layout_.metadata.leaves[column.leaf],
            *layout_.metadata.groups[group_].columns[column.leaf].compression, layout_.limits};
  }

  int64_t rows_of(const Column& column, int64_t number) const {
    const std::vector<int64_t>& firsts = chunk_of(column).firsts;
    const auto at = static_cast<size_t>(number);
    return firsts[at + 1] - firsts[at];
  }
  bool is_few(const Column& column, int64_t number, const PageRows& rows) const {
    return rows.only != nullptr && rows.count * kFew <= static_cast<size_t>(rows_of(column, number));
  }

  // Without unpacking what can be read from where it lies in the file.
  bool take_few(const Column& column, int64_t number, const PageRows& rows,
                const std::vector<uint32_t*>& outs) {
    std::vector<uint32_t>& wanted = scratch().rows;
    wanted.resize(rows.count);
    for (size_t i = 0; i < rows.count; ++i) wanted[i] = static_cast<uint32_t>(rows.row(i));
    FewRows& few = scratch().few;
    const PageSpan span = chunk_of(column).pages[static_cast<size_t>(number)];
    if (read_few_rows(page_column(column), span, rows_of(column, number), wanted, few)) {
      mapped_ = span.offset;
      if (!few.by_dictionary) return take_numbers(column, few.numbers, outs, rows.count);
    } else {
      const Page page = open(column, number, rows);
      const auto& picks = page.form != nullptr ? page.form->picks : page.piece->packed_picks;
      if (!picks) return take_opened(column, page, rows, outs);
      few.picks.resize(rows.count);
      copy_picks(*picks, page.form != nullptr ? page.values : page.piece->packed, rows, 0, rows.count,
                 few.picks.data());
    }
    if (read_few_entries(column, few)) return take_numbers(column, few.numbers, outs, rows.count);
    const auto dictionary = dictionary_of(column);
    if (dictionary->refused) return false;
    check_picks(few.picks.data(), rows.count, dictionary->size);
    for (size_t p = 0; p < outs.size(); ++p)
      pick_entries(dictionary->places[p].entries, few.picks, {}, outs[p]);
    return true;
  }

  // The entries that `few` picks, as long as the dictionary is not kept: from where they lie, or unpacked for
  // these rows alone. False: it has to be kept.
  bool read_few_entries(const Column& column, FewRows& few) {
    bool is_first = false;
    const auto stored = stored_dictionary(column, &is_first);
    if (stored && stored->singly) {
      check_picks(few.picks.data(), few.picks.size(), stored->size);
      mapped_ = chunk_of(column).dictionary.offset;
      if (read_entries(decoder_.bytes_, *stored, few.picks, few.numbers)) return true;
    }
    // Somebody waits for the first rows: encoding all entries is left to those who come after.
    if (is_first && keeps_stored(layout_.metadata.leaves[column.leaf])) unpack_dictionary(column);
    if (unpacked_ == nullptr || unpacked_leaf_ != column.leaf || unpacked_->stored == nullptr) return false;
    check_picks(few.picks.data(), few.picks.size(), unpacked_->size);
    const size_t width = width_of(column);
    few.numbers.resize(few.picks.size() * width);
    for (size_t i = 0; i < few.picks.size(); ++i)
      std::memcpy(few.numbers.data() + i * width, unpacked_->stored + few.picks[i] * width, width);
    return true;
  }

  // What is known of a dictionary that is not kept; null: nothing, or it is kept. `is_first`: nobody asked
  // before.
  std::shared_ptr<const StoredDictionary> stored_dictionary(const Column& column,
                                                            bool* is_first = nullptr) const {
    const PageSpan span = chunk_of(column).dictionary;
    std::array<PieceUse, 2> uses{PieceUse{key_of(column, kDictionary)}, PieceUse{key_of(column, kStored)}};
    decoder_.cache_.find(uses);
    if (uses[0].piece || span.bytes == 0) return nullptr;
    if (uses[1].piece) return uses[1].piece->stored_dictionary;
    const auto find = [&] {
      if (is_first != nullptr) *is_first = true;
      Piece piece;
      piece.stored_dictionary = find_stored_dictionary(page_column(column), span);
      return piece;
    };
    return decoder_.cache_.get(uses[1].key, find)->stored_dictionary;
  }

  bool take_numbers(const Column& column, const std::vector<char>& numbers,
                    const std::vector<uint32_t*>& outs, size_t count) const {
    return take_stored(column, numbers.data(), {0, count, nullptr, 0}, outs);
  }

  static void check_picks(const uint32_t* picks, size_t count, size_t size) {
    if (const uint32_t most = most_of_picks(picks, count); most >= size)
      throw Damaged(fmt::format("it refers to entry {} of a dictionary of {}", most, size));
  }

  // Rows of a page whose form is known.
  Page open_form(const Column& column, std::shared_ptr<const Piece> known, const PageRows& rows,
                 bool map) const {
    const PageForm* const form = &*known->form;
    const size_t width = width_of(column);
    const PackedRuns::Extent extent =
        form->picks ? form->picks->extent(rows.row(0), rows.extent())
                    : PackedRuns::Extent{rows.row(0) * width, (rows.row(0) + rows.extent()) * width};
    const int64_t offset = form->offset + static_cast<int64_t>(extent.begin);
    const size_t bytes = extent.end - extent.begin;
    if (map && form->picks && rows.only == nullptr)
      if (const std::byte* at = fetch_.map(offset, static_cast<int64_t>(bytes + kReadPast))) {
        const auto* const values = reinterpret_cast<const char*>(at);
        return {std::move(known), form, values - extent.begin, MappedPage({values, bytes + kReadPast})};
      }
    const char* const values = read_into(scratch().page, fetch_, offset, bytes).data();
    return {std::move(known), form, values - extent.begin};
  }

  Page open(const Column& column, int64_t number, const PageRows& rows) {
    std::array<PieceUse, 2> uses{PieceUse{key_of(column, form_of(number))},
                                 PieceUse{key_of(column, number), static_cast<int64_t>(rows.count)}};
    decoder_.cache_.find(uses);
    if (uses[0].piece) return open_form(column, std::move(uses[0].piece), rows, true);
    if (uses[1].piece) {
      decoder_.cache_.used({&uses[1], 1});
      return {std::move(uses[1].piece), nullptr, nullptr};
    }
    const PageSpan span = spans_of(layout_, group_, column.leaf, number)[0];
    const std::string_view stored =
        read_into(scratch().page, fetch_, span.offset, static_cast<size_t>(span.bytes));
    const int64_t in_page = rows_of(column, number);
    Piece made;
    made.form =
        find_form(stored, span.offset, layout_.metadata.leaves[column.leaf],
                  *layout_.metadata.groups[group_].columns[column.leaf].compression, in_page, layout_.limits);
    if (made.form) {
      const char* values = stored.data() + (made.form->offset - span.offset);
      auto kept = decoder_.cache_.get(uses[0].key, [&] { return std::move(made); });
      const PageForm* form = &*kept->form;
      return {std::move(kept), form, values};
    }
    const auto make = [&] { return decode(column, number, stored); };
    // What is used up at once is not worth a place.
    if (static_cast<int64_t>(rows.count) >= in_page)
      return {std::make_shared<const Piece>(make()), nullptr, nullptr};
    uses[1].piece = decoder_.cache_.get(uses[1].key, make);
    decoder_.cache_.used({&uses[1], 1});
    return {std::move(uses[1].piece), nullptr, nullptr};
  }

  // A page that has no form. Of the dictionary it needs to know only how long that is.
  Piece decode(const Column& column, int64_t number, std::string_view stored) {
    std::shared_ptr<Dictionary> length;
    if (chunk_of(column).dictionary.bytes > 0) {
      length = std::make_shared<Dictionary>();
      const auto stored_one = stored_dictionary(column);
      length->size = stored_one ? stored_one->size : dictionary_of(column)->size;
    }
    return decode_piece(decoder_.bytes_, layout_, group_, column.leaf, number, {stored}, std::move(length));
  }

  std::shared_ptr<const EncodedDictionary> dictionary_of(const Column& column) {
    if (chunk_of(column).dictionary.bytes == 0) throw Damaged("it refers to a dictionary, and there is none");
    const auto make = [&] {
      Piece piece;
      piece.encoded = std::make_shared<const EncodedDictionary>(
          encode(*unpack_dictionary(column), layout_.metadata.leaves[column.leaf].field(), column.places,
                 encoding_, *decoder_.cache_.memory()));
      return piece;
    };
    return decoder_.cache_.get(key_of(column, kDictionary), make)->encoded;
  }

  const std::shared_ptr<const Dictionary>& unpack_dictionary(const Column& column) {
    const PageSpan span = chunk_of(column).dictionary;
    const std::string_view stored =
        read_into(scratch().dictionary, fetch_, span.offset, static_cast<size_t>(span.bytes));
    try {
      const PageColumn all = page_column(column);
      unpacked_ = decode_dictionary(stored, all.leaf, all.compression, all.limits, scratch().unpacked);
      unpacked_leaf_ = column.leaf;
      return unpacked_;
    } catch (const Damaged& damage) {
      raise_damage(decoder_.bytes_, layout_, group_, column.leaf, kDictionary, damage);
    }
  }

  bool take_opened(const Column& column, Page page, const PageRows& rows,
                   const std::vector<uint32_t*>& outs) {
    return page.form != nullptr ? take_form(column, std::move(page), rows, outs)
                                : take_piece(column, page, rows, outs);
  }

  bool take_form(const Column& column, Page page, const PageRows& rows, const std::vector<uint32_t*>& outs) {
    if (!page.form->picks) return take_stored(column, page.values, rows, outs);
    const auto dictionary = dictionary_of(column);
    if (dictionary->refused) return false;
    if (page.mapped) {
      mapped_ = page.form->offset;
      maps_pages_ = true;
    }
    look_up_all(*dictionary, rows.count, outs, [&](size_t first, size_t count, uint32_t* picks) {
      const auto copy = [&](std::string_view = {}) {
        copy_picks(*page.form->picks, page.values, rows, first, count, picks);
      };
      // Reading says what is wrong with a file.
      if (page.mapped && !page.mapped->read(copy)) page = open_form(column, page.piece, rows, false);
      if (!page.mapped) copy();
      check_picks(picks, count, dictionary->size);
    });
    return true;
  }

  bool take_piece(const Column& column, const Page& page, const PageRows& rows,
                  const std::vector<uint32_t*>& outs) {
    const Piece& piece = *page.piece;
    for (const int64_t bad : piece.bad_rows)
      if (bad >= static_cast<int64_t>(rows.row(0)) && bad <= static_cast<int64_t>(rows.row(rows.count - 1)))
        return false;
    if (piece.stored != nullptr) return take_stored(column, piece.stored, rows, outs);
    if (!piece.packed_picks && !piece.dictionary) return take_values(column, piece, rows, outs);
    const auto dictionary = dictionary_of(column);
    if (dictionary->refused) return false;
    if (!piece.missing.empty()) return take_some(piece, *dictionary, rows, outs);
    look_up_all(*dictionary, rows.count, outs, [&](size_t first, size_t count, uint32_t* picks) {
      if (piece.packed_picks)
        copy_picks(*piece.packed_picks, piece.packed, rows, first, count, picks);
      else
        for (size_t i = 0; i < count; ++i) picks[i] = piece.picks[rows.row(first + i)];
    });
    return true;
  }

  static void copy_picks(const PackedRuns& runs, const char* bytes, const PageRows& rows, size_t first,
                         size_t count, uint32_t* out) {
    if (rows.only == nullptr) return runs.copy(bytes, rows.first + first, count, out);
    for (size_t i = 0; i < count; ++i) runs.copy(bytes, rows.row(first + i), 1, out + i);
  }

  // copy(first, count, picks) gives some picks. While some are looked up, the entries of those that follow
  // are asked for: a dictionary is seldom in the nearest caches.
  template <typename Copy>
  static void look_up_all(const EncodedDictionary& dictionary, size_t count,
                          const std::vector<uint32_t*>& outs, const Copy& copy) {
    auto* now = &scratch().picks[0];
    auto* next = &scratch().picks[1];
    const bool ask = dictionary.size > kNearEntries;
    size_t here = std::min(kAtOnce, count);
    copy(0, here, now->data());
    for (size_t done = 0; done < count;) {
      const size_t after = std::min(kAtOnce, count - done - here);
      if (after > 0) copy(done + here, after, next->data());
      for (size_t p = 0; p < outs.size(); ++p)
        pick_entries(dictionary.places[p].entries, {now->data(), here}, {next->data(), ask ? after : 0},
                     outs[p] + done);
      std::swap(now, next);
      done += here;
      here = after;
    }
  }

  // Places in a dictionary of which some are missing.
  static bool take_some(const Piece& piece, const EncodedDictionary& dictionary, const PageRows& rows,
                        const std::vector<uint32_t*>& outs) {
    for (size_t p = 0; p < outs.size(); ++p) {
      const EncodedDictionary::Place& place = dictionary.places[p];
      for (size_t i = 0; i < rows.count; ++i) {
        const size_t row = rows.row(i);
        const bool missing = piece.missing[row] != 0;
        if (missing && !place.missing) return false;
        outs[p][i] = missing ? *place.missing : place.entries[piece.picks[row]];
      }
    }
    return true;
  }

  // Numbers as they are stored.
  bool take_stored(const Column& column, const char* stored, const PageRows& rows,
                   const std::vector<uint32_t*>& outs) const {
    const auto load = [&](size_t i, auto& value) {
      std::memcpy(&value, stored + rows.row(i) * sizeof value, sizeof value);
    };
    return encode_rows(column, rows, outs, load, nullptr);
  }

  bool take_values(const Column& column, const Piece& piece, const PageRows& rows,
                   const std::vector<uint32_t*>& outs) const {
    const auto load = [&](size_t i, auto& value) {
      value = std::get<std::vector<std::decay_t<decltype(value)>>>(piece.values)[rows.row(i)];
    };
    return encode_rows(column, rows, outs, load, piece.missing.empty() ? nullptr : piece.missing.data());
  }

  // load(i, value) gives the value of the i-th row.
  template <typename Load>
  bool encode_rows(const Column& column, const PageRows& rows, const std::vector<uint32_t*>& outs,
                   const Load& load, const uint8_t* missing) const {
    BlockColumn& some = scratch().values;
    const BlockField field = layout_.metadata.leaves[column.leaf].field();
    if (some.values.index() != static_cast<size_t>(field.type)) some.values = make_column(field).values;
    for (size_t done = 0; done < rows.count; done += kAtOnce) {
      const size_t here = std::min(kAtOnce, rows.count - done);
      std::visit(
          [&](auto& values) {
            values.resize(here);
            for (size_t i = 0; i < here; ++i) load(done + i, values[i]);
          },
          some.values);
      some.missing.resize(missing == nullptr ? 0 : here);
      for (size_t i = 0; i < some.missing.size(); ++i) some.missing[i] = missing[rows.row(done + i)];
      for (size_t p = 0; p < outs.size(); ++p)
        if (!encoding_.encode(column.places[p], some, bytes_of(outs[p] + done, here))) return false;
    }
    return true;
  }

  const RowDecoder& decoder_;
  const FileLayout& layout_;
  const RowEncoding& encoding_;
  const Fetch& fetch_;
  size_t group_;
  std::optional<int64_t> mapped_;
  bool maps_pages_ = false;
  std::shared_ptr<const Dictionary> unpacked_;  // the last one; its values may lie in the thread's scratch
  size_t unpacked_leaf_ = 0;
};

std::vector<RowDecoder::Column> RowDecoder::columns_of(const RowEncoding& encoding) const {
  std::vector<Column> columns;
  const std::vector<std::string> names = encoding.place_columns();
  for (size_t place = 0; place < names.size(); ++place) {
    const auto leaf = std::find_if(layout_.wanted.begin(), layout_.wanted.end(), [&](size_t wanted) {
      return layout_.metadata.leaves[wanted].name == names[place];
    });
    if (leaf == layout_.wanted.end() || layout_.metadata.leaves[*leaf].list()) return {};
    const auto known = std::find_if(columns.begin(), columns.end(),
                                    [&](const Column& column) { return column.leaf == *leaf; });
    if (known == columns.end())
      columns.push_back({*leaf, {place}});
    else
      known->places.push_back(place);
  }
  return columns;
}

// Columns are in the order of their first places, but one may have others further on.
std::vector<RowDecoder::Group> RowDecoder::groups_of(std::span<const Column> columns) {
  std::vector<Group> groups;
  size_t first = 0, places = 0, end = 0;  // of the group that is being made
  for (size_t from = 0, c = 0; c < columns.size(); ++c) {
    places += columns[c].places.size();
    end = std::max(end, columns[c].places.back() + 1);
    const bool follow = first + places == end;
    if ((places < kPlacesTogether || !follow) && c + 1 < columns.size()) continue;
    groups.push_back({columns.subspan(from, c + 1 - from), first, places});
    from = c + 1;
    first = end;
    places = 0;
  }
  return groups;
}

bool RowDecoder::decode(const RowEncoding& encoding, const Part& part, const uint32_t* only, size_t count,
                        const Fetch& fetch, std::byte* rows) const {
  const std::vector<Column> columns = columns_of(encoding);
  if (columns.empty()) return false;
  const std::vector<Group> groups = groups_of(columns);
  const size_t row_bytes = (groups.back().first + groups.back().places) * kPlaceBytes;
  Stretch stretch(*this, encoding, fetch, part.group);
  std::vector<uint32_t*> outs;
  for (size_t done = 0; done < count; done += kStretch) {
    const size_t here = std::min(kStretch, count - done);
    // Columns a power of two apart would all want the same few places of the nearest cache.
    const size_t apart = (here + 15) / 16 * 16 + 16;
    for (const Group& group : groups) {
      std::vector<uint32_t>& values = scratch().columns;
      if (values.size() < group.places * apart) values.resize(group.places * apart);
      for (const Column& column : group.columns) {
        const auto take = [&](int64_t page, const PageRows& wanted, size_t at) {
          outs.clear();
          for (const size_t place : column.places)
            outs.push_back(values.data() + (place - group.first) * apart + at);
          return stretch.take(column, page, wanted, outs);
        };
        const bool taken = only == nullptr ? take_all(column, part, done, here, take)
                                           : take_named(column, part, std::span(only + done, here), take);
        if (!taken) return false;
      }
      put_into_rows(values.data(), apart, group.places, here,
                    rows + done * row_bytes + group.first * kPlaceBytes, row_bytes);
    }
  }
  if (stretch.mapped()) bytes_.check_unchanged(*stretch.mapped());
  if (stretch.only_few())
    reads_mapped_ = true;
  else if (!stretch.mapped() && reads_mapped_.exchange(false))
    bytes_.forget_mapped();  // from here on blocks are read
  return true;
}

template <typename Take>
bool RowDecoder::take_all(const Column& column, const Part& part, size_t first, size_t count,
                          const Take& take) const {
  bool taken = true;
  size_t at = 0;
  for_each_piece(layout_.pages.groups[part.group][column.leaf], part.first + static_cast<int64_t>(first),
                 static_cast<int64_t>(count), [&](int64_t page, int64_t from, int64_t rows) {
                   const auto wanted = static_cast<size_t>(rows);
                   taken = taken && take(page, {static_cast<size_t>(from), wanted, nullptr, 0}, at);
                   at += wanted;
                 });
  return taken;
}

template <typename Take>
bool RowDecoder::take_named(const Column& column, const Part& part, std::span<const uint32_t> rows,
                            const Take& take) const {
  const std::vector<int64_t>& firsts = layout_.pages.groups[part.group][column.leaf].firsts;
  for (size_t at = 0, end = 0; at < rows.size(); at = end) {
    const auto page = std::upper_bound(firsts.begin(), firsts.end(), part.first + int64_t{rows[at]}) - 1;
    for (end = at + 1; end < rows.size() && part.first + int64_t{rows[end]} < page[1];) ++end;
    if (!take(page - firsts.begin(), {0, end - at, rows.data() + at, *page - part.first}, at)) return false;
  }
  return true;
}

}  // namespace lockstep::parquet
